/** Verifying the bank account that a token holds. */

import type { Clock, Instant } from '../../base/clock.ts';
import { invalid, VaultError } from '../../base/errors.ts';
import { isObject, type Json } from '../../base/json.ts';
import { Secret } from '../../base/secret.ts';
import type { Caller } from '../../rules/caller.ts';
import { entryOf, failureOf } from '../../rules/log-entries.ts';
import { openerFor } from '../../rules/openings.ts';
import type { CompletedOperation, Decide, Refused } from '../../rules/operation.ts';
import { decide } from '../../rules/policy.ts';
import { refuse } from '../../rules/refusal.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import { openData } from '../contents/sealed-row.ts';
import { findLiveToken } from '../queries.ts';
import type {
  AccountVerdict,
  BankAccount,
  BankStatus,
  VerifyAccount,
} from './bank-verification.ts';

/** The request as the wire schema lets it through; null means absent. */
export interface BankVerificationRequest {
  readonly token_id: string;
  readonly country_code?: string | null;
  readonly routing_number?: string | null;
}

export interface BankVerifying {
  readonly store: Store;
  readonly clock: Clock;
  readonly verifyAccount: VerifyAccount;
  /** True when a failing provider makes the request fail; else it is inconclusive. */
  readonly strict: boolean;
  /** Called with the reason why a provider failed; nothing of the account is in it. */
  readonly onNoResponse: (caller: Caller, reason: string) => void;
}

const routingNumberForm = /^[0-9]{9}$/;

/**
 * @throws VaultError `validation_failed`; from the decision also `unavailable` if the operator prefers
 * no status to an inconclusive one.
 */
export function verifyBankAccount(
  tools: BankVerifying,
  caller: Caller,
  request: BankVerificationRequest,
): Decide {
  const { store, clock } = tools;
  const country = readCountry(request.country_code);
  return async () => {
    const now = clock.now();
    const id = request.token_id;
    const found = await findLiveToken(store, { tenant: caller.tenant.id, id, now });
    if (found === undefined) return unknownToken(caller, now);
    const subject = { id: found.token_id, container: found.container };
    const grant = decide(caller.policy, 'token:use', subject);
    if (!grant) {
      return refuse(caller, now, { entity: 'token', ...subject, permission: 'token:use' });
    }
    const { row, data } = openData(openerFor(caller, grant), found, now);
    const routing = request.routing_number ?? undefined;
    if (contradicts(row, data, routing)) return wrongRouting(caller, now, subject);
    const account = { country, ...numbersOf(row, data, routing) };
    const verification = await tools.verifyAccount({
      tenant: caller.tenant,
      account,
      trace: caller.origin.trace,
    });
    const outcome = (verdict: AccountVerdict) => outcomeOf(tools, caller, { subject, verdict });
    if (!('request' in verification)) return outcome(verification);
    const sent = { entity: 'token', ...subject, operation: 'use bank service' } as const;
    return {
      change: { entries: [entryOf(caller, now, sent)] },
      reachOut: async () => {
        const verdict = await verification.request();
        return async () => outcome(verdict);
      },
    };
  };
}

interface TokenPlace {
  readonly id: string;
  readonly container: string;
}

interface VerifiedAccount {
  readonly subject: TokenPlace;
  readonly verdict: AccountVerdict;
}

function outcomeOf(
  tools: BankVerifying,
  caller: Caller,
  { subject, verdict }: VerifiedAccount,
): CompletedOperation | Refused {
  const fact = { entity: 'token', ...subject, operation: 'verify' } as const;
  const now = tools.clock.now();
  if (verdict.status === undefined) {
    tools.onNoResponse(caller, verdict.failure);
    if (tools.strict) {
      return { change: { entries: [failureOf(caller, now, fact)] }, refusal: noStatus(verdict) };
    }
  }
  return {
    change: { entries: [entryOf(caller, now, fact)] },
    reply: { status: 200, body: { status: verdict.status ?? 'inconclusive' } },
  };
}

/** Reported as a wrong attribute, and logged like any other attempt at what does not exist. */
function unknownToken(caller: Caller, now: Instant): Refused {
  return {
    change: { entries: [failureOf(caller, now, { entity: 'token', operation: 'use' })] },
    refusal: invalid('token_id', 'must be the id of a token'),
  };
}

/** The response distinguishes a right routing number from a wrong one, so guesses are logged. */
function wrongRouting(caller: Caller, now: Instant, subject: TokenPlace): Refused {
  const form = 'must be left out for a token of type bank, which has its own';
  return {
    change: {
      entries: [failureOf(caller, now, { entity: 'token', ...subject, operation: 'use' })],
    },
    refusal: invalid('routing_number', form),
  };
}

function contradicts(row: Row<'tokens'>, secret: Secret<Json>, routing: string | undefined) {
  if (row.type !== 'bank' || routing === undefined) return false;
  const data = secret.reveal();
  return isObject(data) && data['routing_number'] !== routing;
}

function noStatus({
  failure,
  retryAfterMs,
}: Exclude<AccountVerdict, { status: BankStatus }>): VaultError {
  return new VaultError('unavailable', {
    public: 'The bank verification provider is unavailable; try again.',
    internal: `bank verification: ${failure}`,
    headers: { 'retry-after': String(Math.ceil(retryAfterMs / 1000)) },
  });
}

function readCountry(code: string | null | undefined): BankAccount['country'] {
  if ((code ?? 'US').toUpperCase() === 'US') return 'US';
  throw invalid('country_code', 'must be US, the only country whose accounts can be verified');
}

type AccountNumbers = Pick<BankAccount, 'routingNumber' | 'accountNumber'>;

/** Both numbers, of which one kind of token holds both and the other leaves one to the request. */
function numbersOf(
  row: Row<'tokens'>,
  secret: Secret<Json>,
  routing: string | undefined,
): AccountNumbers {
  const data = secret.reveal();
  if (row.type === 'bank' && isObject(data)) {
    const { routing_number: own, account_number: account } = data;
    return { routingNumber: String(own), accountNumber: new Secret(String(account)) };
  }
  if (row.type !== 'us_bank_account_number') {
    throw invalid('token_id', 'must be a token of type bank or us_bank_account_number');
  }
  if (routing === undefined) {
    throw invalid('routing_number', 'is required for a token of type us_bank_account_number');
  }
  if (!routingNumberForm.test(routing)) throw invalid('routing_number', 'must be 9 digits');
  return { routingNumber: routing, accountNumber: new Secret(String(data)) };
}

/** Bank verification: one row per provider, and the choice of the provider for an account. */

import { abaAssignable } from '../../base/checks.ts';
import { type Clock, minute } from '../../base/clock.ts';
import { ExpiringMap } from '../../base/expiring-map.ts';
import type { Json } from '../../base/json.ts';
import type { Secret } from '../../base/secret.ts';
import type { TraceContext } from '../../base/telemetry/trace-context.ts';
import { searchTermOf } from '../../keys/digest.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { RoutingDirectory } from './routing-directory.ts';

const bankStatuses = ['enabled', 'disabled', 'inconclusive'] as const;
export type BankStatus = (typeof bankStatuses)[number];

export interface BankAccount {
  readonly country: 'US';
  /** Nine digits. The providers decide whether they can be a routing number. */
  readonly routingNumber: string;
  readonly accountNumber: Secret<string>;
}

export interface Inquiry {
  readonly tenant: Tenant;
  readonly account: BankAccount;
  readonly trace: TraceContext | undefined;
}

/** A status, or the reason why there is none at the moment. */
export type AccountVerdict =
  | { readonly status: BankStatus }
  | { readonly status?: never; readonly failure: string; readonly retryAfterMs: number };

/** Only another host knows: in `request` the numbers leave the vault, for which the caller prepares. */
export interface RemoteVerification {
  readonly request: () => Promise<AccountVerdict>;
}

/** Calls no other host. */
export type VerifyAccount = (inquiry: Inquiry) => Promise<AccountVerdict | RemoteVerification>;

export interface BankVerificationOptions {
  readonly clock: Clock;
  /** Absent if the operator has none. */
  readonly directory?: (() => Promise<RoutingDirectory>) | undefined;
  /** The operator's own service; absent where none is configured. */
  readonly service?: VerifyAccount | undefined;
  /** How long a status of the service is cached; with 0 the service is called each time. */
  readonly cacheMs: number;
}

const statusesCached = 10_000;
const unconfiguredRetryMs = 5 * minute;

/** The published pairs of routing and account number with their documented statuses. */
const published: Readonly<Record<string, BankStatus>> = {
  '021000020 00000': 'disabled',
  '021000021 00001': 'enabled',
  '021000021 00002': 'inconclusive',
};

/**
 * A tenant chooses between `rules` and `http`. `test` cannot be chosen: it responds in test tenants alone,
 * so that no setting can give a production tenant an invented status.
 */
export function createBankVerification(options: BankVerificationOptions): VerifyAccount {
  const { clock, directory, service, cacheMs } = options;
  const recent = new ExpiringMap<string, BankStatus>({
    clock,
    ageMsMax: cacheMs,
    entriesMax: statusesCached,
  });

  const providers: Readonly<Record<ProviderName, VerifyAccount>> = {
    rules: async ({ account }) => {
      if (!abaAssignable(account.routingNumber)) return { status: 'disabled' };
      const listed = (await directory?.())?.has(account.routingNumber) ?? true;
      return { status: listed ? 'inconclusive' : 'disabled' };
    },
    http: async (inquiry) => {
      if (!abaAssignable(inquiry.account.routingNumber)) return { status: 'disabled' };
      if (service === undefined) {
        return { failure: 'no service is configured', retryAfterMs: unconfiguredRetryMs };
      }
      const key = keyOf(inquiry);
      const known = recent.get(key);
      if (known !== undefined) return { status: known };
      const verification = await service(inquiry);
      if (!('request' in verification)) return verification;
      const request = async () => {
        const verdict = await verification.request();
        if (verdict.status !== undefined) recent.set(key, verdict.status);
        return verdict;
      };
      return { request };
    },
    test: async ({ account }) => ({ status: published[pairOf(account)] ?? 'inconclusive' }),
  };

  return (inquiry) => {
    const { tenant, account } = inquiry;
    const tested = tenant.type === 'test' && Object.hasOwn(published, pairOf(account));
    return providers[tested ? 'test' : providerOf(tenant)](inquiry);
  };
}

export function parseBankStatus(value: Json | undefined): BankStatus | undefined {
  const text = typeof value === 'string' ? value.trim() : undefined;
  return bankStatuses.find((status) => status === text);
}

type ProviderName = 'rules' | 'http' | 'test';

function providerOf({ settings }: Tenant): ProviderName {
  return settings.bank_verification_provider === 'http' ? 'http' : 'rules';
}

function pairOf({ routingNumber, accountNumber }: BankAccount): string {
  return `${routingNumber} ${accountNumber.reveal()}`;
}

/** Keyed, so that the memory of the process holds no account number longer than a request. */
function keyOf({ tenant, account }: Inquiry): string {
  const secret = tenant.keyring.secret('search');
  const term = searchTermOf(secret, 'bank verification', pairOf(account));
  return `${tenant.id} ${Buffer.from(term).toString('base64url')}`;
}

/** Explaining egress: what would happen to a request of an application's program, and to a value in it. */
import { accessOf, storedPolicies } from '../../access/applications/row.ts';
import type { Clock } from '../../base/clock.ts';
import { invalid } from '../../base/errors.ts';
import type { Caller } from '../../rules/caller.ts';
import { allowsDestination } from '../../rules/destinations.ts';
import {
  type EgressPolicy,
  parsePolicies,
  placeOfPolicy,
  policiesFor,
  policyFor,
  policyHasToken,
  type WirePolicy,
} from '../../rules/egress-policies.ts';
import { comparedName } from '../../rules/host-names.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';
import { decideUse, policyOf } from '../../rules/policy.ts';
import { rowOf } from '../../rules/stored-resource.ts';
import type { Store } from '../../store/store.ts';
import { liveToken } from '../../tokens/queries.ts';
import { approvalBasis, coveringApproval } from '../approvals/waiting.ts';
import {
  type FindPlaceholder,
  findingPlaceholders,
  placeholdersIn,
} from './placeholder-targets.ts';

export interface EgressQuestion {
  readonly application_id: string;
  readonly method: string;
  readonly url: string;
  readonly websocket?: boolean | null;
  readonly token_id?: string | null;
  readonly placeholder?: string | null;
  readonly place?: string | null;
  readonly egress?: readonly WirePolicy[] | null;
}

/** The token that the question is about, if it is about one. */
function tokenOf(
  { token_id, placeholder }: EgressQuestion,
  find: FindPlaceholder,
): string | undefined {
  if (typeof placeholder !== 'string') return token_id ?? undefined;
  const [found, ...others] = placeholdersIn(placeholder);
  const target = found?.text === placeholder && others.length === 0 ? find(placeholder) : undefined;
  if (target) return target.tokenId;
  throw invalid('placeholder', 'is unknown, of another application, or has ended');
}

export interface EgressExplaining {
  readonly store: Store;
  readonly clock: Clock;
}

/** Nothing is sent, and nothing is opened. From the decision `not_found` for an application or a token. */
export function explainEgress(
  { store, clock }: EgressExplaining,
  caller: Caller,
  question: EgressQuestion,
): Decide {
  const url = readUrl(question.url);
  const hasToken = typeof question.token_id === 'string';
  const hasPlaceholder = typeof question.placeholder === 'string';
  if (hasToken && hasPlaceholder) {
    throw invalid('placeholder', 'cannot be combined with token_id');
  }
  if (typeof question.place === 'string' && !hasToken && !hasPlaceholder) {
    throw invalid('token_id', 'or placeholder is required with place');
  }
  const isHandshake = question.websocket === true;
  if (isHandshake && question.method !== 'GET') {
    throw invalid('websocket', 'needs the method GET, by which it is opened');
  }
  return async () => {
    const now = clock.now();
    const { tenant } = caller;
    const row = await rowOf(store, 'applications', { tenant, id: question.application_id });
    const policies = parsePolicies(question.egress, row.type) ?? storedPolicies(row) ?? [];
    const decided = decideRequest(policies, { url, method: question.method, isHandshake });
    const destinations = tenant.settings.proxy_destinations;
    const isKept = !allowsDestination(destinations, url.hostname) && decided.policy !== undefined;
    const holder = {
      keyring: tenant.keyring,
      application: row.application_id,
      policies,
      now: () => clock.now(),
    };
    const find = await findingPlaceholders(holder, [question.placeholder ?? '']);
    const id = tokenOf(question, find);
    const token =
      id === undefined ? undefined : await liveToken(store, { tenant: tenant.id, id, now });
    const subject = token && { id: token.token_id, container: token.container };
    const isUsable = subject && decideUse(policyOf(accessOf(row)), subject) !== undefined;
    const { policy } = decided;
    const outcome = isKept ? keptBack : decided;
    const application = row.application_id;
    const waits =
      policy?.approval !== undefined &&
      outcome.outcome === 'sent' &&
      !(await coveringApproval(store, tenant, { ...approvalBasis(policy, url), application, now }));
    const fact = { entity: 'application', id: row.application_id, operation: 'explain' } as const;
    // The response says that a token exists.
    const named =
      subject && entryOf(caller, now, { entity: 'token', ...subject, operation: 'explain' });
    const asked = entryOf(caller, now, fact);
    return {
      change: { entries: named ? [asked, named] : [asked] },
      reply: {
        status: 200,
        body: {
          outcome: outcome.outcome,
          reason: waits ? waitingReason : outcome.reason,
          ...(policy && { policy: policies.indexOf(policy), approval: policy.approval ?? 'none' }),
          ...(policy && { waits }),
          ...(subject && {
            value: explainValue({
              policy: outcome.outcome === 'sent' ? policy : undefined,
              isUsable: isUsable === true,
              isHandshake,
              subject,
              place: question.place ?? undefined,
            }),
          }),
        },
      },
    };
  };
}

const unlessGuessed =
  'A value of digits alone, or of fewer than 16 characters, is refused: messages could be used to guess it.';
const waitingReason =
  'The first policy that matches decides: it waits for the approval of a person.';

interface DecidedRequest {
  readonly outcome: 'sent' | 'tunnelled' | 'refused';
  readonly reason: string;
  readonly policy?: EgressPolicy;
}

const keptBack: DecidedRequest = {
  outcome: 'refused',
  reason: 'The tenant does not allow this destination (setting proxy_destinations).',
};

interface AskedRequest {
  readonly url: URL;
  readonly method: string;
  readonly isHandshake: boolean;
}

/** What the policies say of a request, before its tenant, its tokens and its budgets are looked at. */
function decideRequest(
  policies: readonly EgressPolicy[],
  { url, method, isHandshake }: AskedRequest,
): DecidedRequest {
  const isPlain = url.protocol === 'http:';
  const host = comparedName(url.hostname);
  const port = Number(url.port || (isPlain ? 80 : 443));
  const forHost = policiesFor(policies, { host, port, isPlain });
  if (forHost.length === 0) {
    return { outcome: 'refused', reason: 'No egress policy of the application has this host.' };
  }
  const tunnel = forHost.find((one) => one.tunnel);
  if (tunnel) {
    const reason = 'The connection is passed on without being opened: no value is put in.';
    return { outcome: 'tunnelled', reason, policy: tunnel };
  }
  const policy = policyFor(forHost, { method, path: url.pathname });
  if (policy && isHandshake && !policy.websocket) {
    return { outcome: 'refused', reason: 'The egress policy has no WebSocket.', policy };
  }
  if (policy) return { outcome: 'sent', reason: 'The first policy that matches decides.', policy };
  const reason = 'The egress policies for this host do not have the method and the path.';
  return { outcome: 'refused', reason };
}

interface ExplainedValue {
  readonly policy: EgressPolicy | undefined;
  readonly isUsable: boolean;
  readonly isHandshake: boolean;
  readonly subject: { readonly id: string; readonly container: string };
  readonly place: string | undefined;
}

function explainValue(explained: ExplainedValue): object {
  const { policy, isUsable, isHandshake, subject, place } = explained;
  const refused = (reason: string) => ({ sent: false, reason });
  if (!policy) return refused('The request is not opened or not sent.');
  if (!isUsable) return refused('The rules of the application do not let it send this token.');
  if (!policyHasToken(policy, subject)) return refused('The policy does not have this token.');
  const isPossible = (one: string) => !isHandshake || one.startsWith('header:');
  const places = policy.places?.filter(isPossible) ?? [];
  if (places.length === 0) return refused('A handshake has no body, and the policy has no header.');
  const unless = isHandshake ? ` ${unlessGuessed}` : '';
  if (place === undefined) {
    return { sent: true, reason: `In the places that the policy names.${unless}`, places };
  }
  const spelled = place.replace(/^header:.*/, (text) => text.toLowerCase());
  return isPossible(spelled) && placeOfPolicy(policy, spelled)
    ? { sent: true, reason: `The policy has the token and the place.${unless}` }
    : refused('The policy does not have this place.');
}

function readUrl(text: string): URL {
  const url = /^https?:\/\//i.test(text) ? URL.parse(text) : null;
  if (url === null || url.username !== '' || url.password !== '') {
    throw invalid('url', 'must be an https or http URL without a user name');
  }
  return url;
}

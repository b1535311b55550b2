/** Admission: who is calling, and whether the key holds the route's permission at all. */
import type { Authenticate } from '../../gate/authenticate.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Caller, Origin } from '../../rules/caller.ts';
import { attemptOf } from '../../rules/log-entries.ts';
import { type Effect, perform } from '../../rules/operation.ts';
import { holds } from '../../rules/policy.ts';
import { forbid, refuse } from '../../rules/refusal.ts';
import type { Store } from '../../store/store.ts';
import type { Route } from '../protocol/route.ts';
import type { Holder } from './rate-limit.ts';

export interface AdmissionOptions {
  readonly authenticate: Authenticate;
  readonly store: Store;
  readonly clock: Clock;
}

export interface Applicant {
  readonly key: string | undefined;
  readonly origin: Origin;
  /** Called once the key is known to be valid; the request is not admitted where it throws. */
  readonly count?: ((holder: Holder) => Promise<void>) | undefined;
}

/** Rejects with `unauthenticated`, with what `count` throws or, logged, with `forbidden`. */
export type Admit = (route: Route, applicant: Applicant) => Promise<Caller>;

export function createAdmission({ authenticate, store, clock }: AdmissionOptions): Admit {
  function refusalOf(route: Route, caller: Caller): Effect | undefined {
    const { permission, kinds } = route;
    const forbidding = (message: string) =>
      forbid(caller, clock.now(), { ...attemptOf(route), id: '*', message });
    if (caller.policy.size === 0) {
      return forbidding(
        'The session of this key is not authorized, or its authorization has ended.',
      );
    }
    if (kinds && !kinds.includes(caller.kind)) {
      return forbidding(`This request needs a ${kinds.join(' or ')} API key.`);
    }
    if (permission === 'any key' || holds(caller.policy, permission)) return undefined;
    const { entity } = attemptOf(route);
    return refuse(caller, clock.now(), { entity, id: '*', permission });
  }

  return async (route, { key, origin, count }) => {
    const caller = await authenticate(key, origin);
    await count?.(caller);
    const refusal = refusalOf(route, caller);
    if (refusal) await perform(store, async () => refusal);
    return caller;
  };
}

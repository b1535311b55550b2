/** Admission: who is calling, and whether the key holds the route's permission at all. */
import type { Clock } from '../lib/clock.ts';
import type { Store } from '../store/store.ts';
import { holds } from '../vault/access/access.ts';
import type { Authenticate } from '../vault/access/authenticate.ts';
import type { Caller, Origin } from '../vault/access/caller.ts';
import { attemptOf } from '../vault/logs/audit.ts';
import { type Effect, forbid, perform, refuse } from '../vault/perform.ts';
import type { Route } from './route.ts';

export interface AdmissionOptions {
  readonly authenticate: Authenticate;
  readonly store: Store;
  readonly clock: Clock;
}

export interface Applicant {
  readonly key: string | undefined;
  readonly origin: Origin;
}

/** Rejects with `unauthenticated` or, logged, with `forbidden`. */
export type Admit = (route: Route, applicant: Applicant) => Promise<Caller>;

export function createAdmission({ authenticate, store, clock }: AdmissionOptions): Admit {
  function refusalOf(route: Route, caller: Caller): Effect | undefined {
    const { permission, kinds = [caller.kind] } = route;
    const attempt = { ...attemptOf(route), id: '*' };
    const now = clock.now();
    if (caller.policy.size === 0) {
      const message = 'The session of this key is not authorized, or no longer.';
      return forbid(caller, now, { ...attempt, message });
    }
    if (!kinds.includes(caller.kind)) {
      const message = `This needs a key of another kind: ${kinds.join(' or ')}.`;
      return forbid(caller, now, { ...attempt, message });
    }
    if (permission === 'any key' || holds(caller.policy, permission)) return undefined;
    return refuse(caller, now, { entity: attempt.entity, id: '*', permission });
  }

  return async (route, { key, origin }) => {
    const caller = await authenticate(key, origin);
    const refusal = refusalOf(route, caller);
    if (refusal) await perform(store, async () => refusal);
    return caller;
  };
}

/** Admission: which caller sends a request, and whether its key holds the permission of the route at all. */
import type { Authenticate } from '../../access/authenticate.ts';
import { requirePresence } from '../../access/console-sessions.ts';
import type { Clock } from '../../base/clock.ts';
import { attemptOf } from '../../rules/attempted-route.ts';
import type { Caller } from '../../rules/caller.ts';
import { type Effect, perform } from '../../rules/operation.ts';
import { permitsOrigin, type RequestOrigin } from '../../rules/page-origins.ts';
import { permissions } from '../../rules/permissions.ts';
import { holds } from '../../rules/policy.ts';
import { forbid, refuse } from '../../rules/refusal.ts';
import type { Store } from '../../store/store.ts';
import { originOf, type RequestContext } from '../protocol/request-context.ts';
import type { Route } from '../protocol/route.ts';
import type { Holder, Sender } from './rate-limit.ts';

export interface RequestAdmissionOptions {
  readonly authenticate: Authenticate;
  readonly store: Store;
  readonly clock: Clock;
}

/** The target of the request: a route, or the call of a proxy. */
export type Admitted = Pick<Route, 'method' | 'path' | 'permission' | 'alternative' | 'kinds'>;

type CountRequest = (holder: Holder) => Promise<void> | undefined;

export interface RequestAdmission {
  /** The sender whom limits count: from the headers alone, and from the caller once it is known. */
  senderOf(context: RequestContext): Sender;
  /**
   * The caller as of now, on every call; without a promise if the key is cached. Rejects with `unauthenticated`, with
   * what `count` throws once the key is known to be valid or, logged, with `forbidden`.
   */
  admit(route: Admitted, context: RequestContext, count?: CountRequest): Caller | Promise<Caller>;
}

interface Admitting {
  readonly context: RequestContext;
  readonly count: CountRequest | undefined;
}

export function createAdmission(options: RequestAdmissionOptions): RequestAdmission {
  const { authenticate, store, clock } = options;

  function refusalOf(route: Admitted, caller: Caller, context: RequestContext): Effect | undefined {
    const { permission, alternative, kinds } = route;
    const forbidding = (message: string) =>
      forbid(caller, clock.now(), { ...attemptOf(route), id: '*', message });
    if (!permitsOrigin(caller.pageOrigins, pageOf(context))) {
      return forbidding('The application does not list the origin of this page in `origins`.');
    }
    if (caller.policy.size === 0) {
      return forbidding(
        'The session of this key is not authorized, or its authorization has ended.',
      );
    }
    if (kinds && !kinds.includes(caller.kind)) {
      return forbidding(`This request needs a ${kinds.join(' or ')} API key.`);
    }
    if (permission === 'any key' || holds(caller.policy, permission)) return undefined;
    if (alternative && holds(caller.policy, alternative)) return undefined;
    const { entity } = attemptOf(route);
    return refuse(caller, clock.now(), { entity, id: '*', permission });
  }

  function permitted(
    route: Admitted,
    caller: Caller,
    { context, count }: Pick<Admitting, 'context'> & Partial<Admitting>,
  ): Caller | Promise<Caller> {
    const counted = count?.(caller);
    if (counted) return counted.then(() => permitted(route, caller, { context }));
    const refusal = refusalOf(route, caller, context);
    if (!refusal) requirePresenceFor(route, caller);
    // Whoever observes requests learns whose was refused.
    if (refusal) context.caller = caller;
    return refusal
      ? perform({ store, actor: caller, clock, route }, async () => refusal).then(() => caller)
      : caller;
  }

  return {
    senderOf: (context) => ({
      address: context.address,
      key: context.apiKey,
      holder: context.caller,
    }),
    admit: (route, context, count) => {
      const caller = authenticate(context.apiKey, originOf(context));
      if (!(caller instanceof Promise)) {
        context.share?.settle(caller);
        return permitted(route, caller, { context, count });
      }
      return caller.then(
        (read) => {
          context.share?.settle(read);
          return permitted(route, read, { context, count });
        },
        (error) => {
          // The former holder of the key does not pay for requests that are sent with it from now on.
          context.share?.settle(undefined);
          throw error;
        },
      );
    },
  };
}

/**
 * For whatever changes the configuration of a tenant, and for every request that gives a reason to see or send whole
 * values.
 */
function requirePresenceFor({ method, permission }: Admitted, { signedIn, origin }: Caller): void {
  if (signedIn === undefined) return;
  const isManaging = permission !== 'any key' && permissions[permission].needsPresence;
  if ((isManaging && method !== 'GET') || origin.reason !== undefined) requirePresence(signedIn);
}

function pageOf({ headers }: RequestContext): RequestOrigin {
  const site = headers['sec-fetch-site'];
  const { origin, host } = headers;
  return { origin, host, site: typeof site === 'string' ? site : undefined };
}

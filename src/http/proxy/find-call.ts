/** The caller and the proxy of a call, both as of now, on every call. */
import type { CallerOfProxy } from '../../access/proxy-caller.ts';
import type { Clock } from '../../base/clock.ts';
import { VaultError } from '../../base/errors.ts';
import { type CalledProxy, ephemeralProxy } from '../../proxies/calls/called-proxy.ts';
import type { Proxy as ConfiguredProxy, FoundProxy, ProxyFinder } from '../../proxies/find.ts';
import type { Caller, Origin } from '../../rules/caller.ts';
import { perform } from '../../rules/operation.ts';
import type { Store } from '../../store/store.ts';
import type { Admitted, RequestAdmission } from '../limits/admission.ts';
import type { Holder, RouteLimits } from '../limits/rate-limit.ts';
import type { ServiceHeaders } from '../protocol/headers.ts';
import { originOf, type RequestContext } from '../protocol/request-context.ts';
import type { CallTarget } from './call-target.ts';
import { callPath } from './methods.ts';

export interface FindingCalls {
  readonly store: Store;
  readonly clock: Clock;
  readonly headers: ServiceHeaders;
  readonly admission: RequestAdmission;
  readonly proxies: ProxyFinder;
  readonly callerOfProxy: CallerOfProxy;
}

export interface CallParties {
  readonly caller: Caller;
  readonly proxy: CalledProxy;
}

export interface CallSought {
  readonly context: RequestContext;
  /** How the proxy is found, where the call is not for one that it describes itself. */
  readonly find: (() => Promise<FoundProxy | undefined>) | undefined;
  readonly url: CallTarget['url'];
  /** Of the first time; a call is counted once. */
  readonly limits: RouteLimits | undefined;
}

const ephemeral = { method: 'POST', path: callPath, permission: 'proxy:invoke' } as const;
/** The older permission still serves for proxies that were set up before. */
const configured: Admitted = { ...ephemeral, alternative: 'token:use' };

/** Rejects with `not_found`, alike for a proxy that is missing and for another tenant's, and as admission does. */
export function createFindCall(
  options: FindingCalls,
): (sought: CallSought) => Promise<CallParties> {
  const { store, clock, headers, admission, callerOfProxy } = options;

  function admit(route: Admitted, { context, limits }: CallSought): Caller | Promise<Caller> {
    if (!limits) return admission.admit(route, context);
    const count = (holder: Holder) =>
      limits.byKey({ ...admission.senderOf(context), holder }, context);
    return admission.admit(route, context, count);
  }

  /** Fails and records it, so that the log shows a caller that tries proxy keys with a key of its own. */
  async function failed(caller: Caller, error: unknown): Promise<never> {
    const decide = () => Promise.reject(error);
    await perform({ store, actor: caller, clock, route: configured }, decide);
    throw error;
  }

  /** The application may have been altered outside the vault; then no caller acts with its rules. */
  async function actorOf(proxy: ConfiguredProxy, origin: Origin): Promise<Caller> {
    try {
      return await callerOfProxy(proxy, origin);
    } catch (error) {
      const withoutApplication = { ...proxy, applicationId: undefined };
      return failed(await callerOfProxy(withoutApplication, origin), error);
    }
  }

  /**
   * A proxy that requires no key ignores one that is sent: all callers act alike, and the proxy's tenant pays.
   * Rejects with `too_many_requests` while too many calls of its visitors are in progress.
   */
  async function anonymous(
    proxy: ConfiguredProxy,
    { context, limits }: CallSought,
  ): Promise<CallParties> {
    await limits?.byKey({ address: context.address, proxy: proxy.id }, context);
    const caller = await actorOf(proxy, originOf(context));
    context.share?.settle(caller);
    return { proxy, caller };
  }

  async function described(sought: CallSought): Promise<CallParties> {
    const { context, url } = sought;
    const caller = await admit(ephemeral, sought);
    if (url === undefined)
      throw nothingNamed(
        headers.nameAsSent(context.request, 'proxy-key'),
        headers.nameAsSent(context.request, 'proxy-url'),
      );
    const header = headers.nameAsSent(context.request, 'proxy-url');
    return { caller, proxy: ephemeralProxy(caller.tenant, { url, header }) };
  }

  return async (sought) => {
    const { context, find } = sought;
    if (!find) return described(sought);
    const found = await find();
    const proxy = found && 'proxy' in found ? found.proxy : undefined;
    // A caller that asks for it reaches proxies of its own tenant alone, for instance with what a customer typed.
    const isOwnOnly = headers.read(context.headers, 'proxy-require-key') !== undefined;
    if (proxy && !proxy.requireAuth && !isOwnOnly) return anonymous(proxy, sought);
    const hasKey = headers.read(context.headers, 'api-key') !== undefined;
    if (!proxy && !hasKey) throw unknownProxy();
    const admitted = admit(configured, sought);
    const caller = admitted instanceof Promise ? await admitted : admitted;
    return proxy?.tenant.id === caller.tenant.id
      ? { caller, proxy }
      : failed(caller, unknownProxy());
  };
}

/**
 * Fails, as admission does, where a call that began with these parties could not go on with those of now.
 * @throws VaultError `forbidden`
 */
export function requireSameBasis(began: CallParties, now: CallParties): void {
  const { caller } = now;
  const hasOther = began.caller.application !== caller.application;
  const isEmpty = began.caller.policy.size > 0 && caller.policy.size === 0;
  if (began.proxy.id === now.proxy.id && !hasOther && !isEmpty) return;
  throw new VaultError('forbidden', {
    public: 'The proxy, or the application with whose rights it acts, is not the same any more.',
  });
}

function unknownProxy(): VaultError {
  return new VaultError('not_found', { public: 'There is no such proxy.' });
}

function nothingNamed(key: string, url: string): VaultError {
  return new VaultError('invalid_proxy_request', {
    public: `Name a proxy in ${key}, or a destination in ${url}.`,
  });
}

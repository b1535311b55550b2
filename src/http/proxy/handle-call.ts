/** The order in which every call of a proxy is handled. */
import { pipeline, Readable } from 'node:stream';
import type { CallerOfProxy } from '../../access/proxy-caller.ts';
import { second } from '../../base/clock.ts';
import { VaultError } from '../../base/errors.ts';
import { callProxy, type ProxyCalling } from '../../proxies/calls/call.ts';
import { invalidCall } from '../../proxies/calls/called-proxy.ts';
import { type CallPath, checkPath } from '../../proxies/calls/destination.ts';
import { createHeldBytes } from '../../proxies/calls/held-bytes.ts';
import { refusalOfCall } from '../../proxies/calls/permitted.ts';
import type { GivenApproval, ProxyCall, ProxyResponse } from '../../proxies/calls/proxy-call.ts';
import type { ProxyFinder } from '../../proxies/find.ts';
import type { VaultNames } from '../../rules/host-names.ts';
import { isEnded, perform } from '../../rules/operation.ts';
import type { Store } from '../../store/store.ts';
import type { RequestAdmission } from '../limits/admission.ts';
import type { RouteLimits, RouteName } from '../limits/rate-limit.ts';
import type { ServiceHeaders } from '../protocol/headers.ts';
import { paced } from '../protocol/paced.ts';
import { originOf, type RequestContext } from '../protocol/request-context.ts';
import type { Streaming } from '../protocol/streaming.ts';
import { type CallBodyOptions, readCallBody } from './call-body.ts';
import { type CallHeaders, headersOfCall } from './call-headers.ts';
import { isCallAddress, targetBelowProxy, targetOfHost } from './call-target.ts';
import {
  type CallParties,
  type CallSought,
  createFindCall,
  requireSameBasis,
} from './find-call.ts';
import { createProxyHosts } from './hosts.ts';
import { callMethods, callPath, isCallMethod } from './methods.ts';
import { passOn } from './pass-on.ts';

/** As for routes: a call admitted longer ago than this is admitted again. */
const admissionMs = second / 2;

export interface CallingOptions extends ProxyCalling {
  readonly store: Store;
  readonly headers: ServiceHeaders;
  readonly admission: RequestAdmission;
  readonly proxies: ProxyFinder;
  readonly callerOfProxy: CallerOfProxy;
  readonly streaming: Streaming;
  readonly rateLimits: (route: RouteName) => RouteLimits;
  readonly names: VaultNames;
}

const calling = { permission: 'proxy:invoke', path: callPath };

type HandleCall = (context: RequestContext) => Promise<void>;

/** `undefined` at once where a request surely calls no proxy. Where that depends on its Host, it is found out. */
export type HandlerOfCall = (
  context: RequestContext,
) => HandleCall | Promise<HandleCall | undefined> | undefined;

interface AddressedCall extends CallPath, Pick<CallSought, 'find' | 'url'> {
  /** False where the host is the proxy's. */
  readonly isOnOwnHost: boolean;
}

/** What is found out before the body of a call is read. */
interface PreparedCall extends Pick<ProxyCall, 'readPlaceholders'> {
  /** Set if a person has to approve the call; resolves when one has. */
  readonly approve?: (call: ProxyCall) => Promise<GivenApproval | undefined>;
}

/** What differs between calls of proxies and requests of programs. */
export interface HandledCall
  extends CallPath,
    Pick<CallBodyOptions, 'marks'>,
    Pick<ProxyCall, 'upgrade'> {
  readonly isOnOwnHost: boolean;
  /** Who calls, and what, as of now. The limits are of the first time. */
  readonly parties: (limits: RouteLimits | undefined) => Promise<CallParties>;
  readonly headers: () => CallHeaders;
  /** Before anything is opened for the call. */
  readonly prepare?: (parties: CallParties) => Promise<PreparedCall>;
  /** @throws VaultError in the place of the response. */
  readonly receive?: (response: ProxyResponse, call: ProxyCall) => Promise<ProxyResponse>;
}

/** In the order in which every call is handled, whatever names its destination. */
export function createHandleCall(
  options: CallingOptions,
): (context: RequestContext, handled: HandledCall) => Promise<void> {
  const { store, clock, headers, admission, streaming } = options;
  const shareOf = createHeldBytes();
  const limits = new Map<string, RouteLimits>(
    callMethods.map((method) => [method, options.rateLimits({ method, path: callPath })]),
  );

  async function handle(context: RequestContext, handled: HandledCall): Promise<void> {
    context.route = callPath;
    const { method } = context;
    requireCallMethod(method);
    const sender = admission.senderOf(context);
    const counting = limits.get(method)?.byAddress(sender, context);
    if (counting) await counting;
    const admittedAt = clock.now();
    const { path, query, upgrade, parties: find } = handled;
    let parties = await find(limits.get(method));
    context.caller = parties.caller;
    refuseIdempotencyKey(context, headers);
    checkPath(path);
    const refused = refusedCall(parties, { method, path });
    if (refused) await refused;
    const { approve, ...prepared } = (await handled.prepare?.(parties)) ?? {};
    const sent = handled.headers();
    const { marks } = handled;
    const literal = marks === undefined && parties.proxy.disableDetokenization;
    const { hold, release } = shareOf(parties.proxy.tenant.id);
    const body = await readCallBody(context, {
      streaming,
      literal,
      hold,
      ...(marks && { marks }),
      isWhole: approve !== undefined,
    }).catch((error) => {
      release();
      throw error;
    });
    const turn = context.share?.turn();
    if (turn) await turn;
    const gone = new AbortController();
    const stands = async () => {
      requireSameBasis(parties, await find(undefined));
    };
    // Bodies flow in both directions for as long as their hosts like: they end with the key and with the proxy.
    const watch = setInterval(() => {
      stands().catch((error: unknown) => {
        if (isEnded(error)) gone.abort();
      });
    }, admissionMs).unref();
    streaming.passOn(context, () => {
      clearInterval(watch);
      // What has come to its end needs no error with all that leads to it.
      if (!context.response.writableFinished) gone.abort();
      release();
      if (body.content instanceof Readable) body.content.destroy();
    });
    const { signal } = gone;
    const described = { method, path, query, ...sent, body, hold, stands, signal, upgrade };
    const approval = await approve?.({ ...parties, ...prepared, ...described });
    // While a body arrives slowly or a person decides, a key may be revoked, and a proxy or its tenant changed.
    if (approve || clock.now() - admittedAt >= admissionMs) {
      parties = await find(undefined);
      context.caller = parties.caller;
      await refusedCall(parties, { method, path });
    }
    const call: ProxyCall = { ...parties, ...prepared, ...described, approval };
    const route = { ...calling, method };
    const performed = perform(
      { store, actor: call.caller, clock, route, stands },
      callProxy(options, call),
    );
    const { receive = async (response) => response } = handled;
    const response = await performed
      .then((one) => receive(one, call))
      .catch((error) => {
        // Discards a response that the destination has sent by then.
        gone.abort();
        throw error;
      });
    passOn(context, pacedResponse(response, context), handled.isOnOwnHost);
  }

  /** Where it is not allowed, which is logged. */
  function refusedCall(
    parties: CallParties,
    sent: { readonly method: string; readonly path: string },
  ): Promise<unknown> | undefined {
    const refused = refusalOfCall({ clock }, { ...parties, ...sent });
    const route = { ...calling, method: sent.method };
    const performing = { store, actor: parties.caller, clock, route };
    return refused && perform(performing, async () => refused);
  }

  return handle;
}

export function createCalling(options: CallingOptions): HandlerOfCall {
  const { headers, proxies } = options;
  const hosts = createProxyHosts(options);
  const findCall = createFindCall(options);
  const handleCall = createHandleCall(options);

  function handle(context: RequestContext, addressed: AddressedCall): Promise<void> {
    context.isProxyCall = true;
    const { path, query, isOnOwnHost } = addressed;
    return handleCall(context, {
      path,
      query,
      isOnOwnHost,
      parties: (limits) => findCall({ ...addressed, context, limits }),
      headers: () => headersOfCall(context, headers),
    });
  }

  async function byHost(host: string, context: RequestContext): Promise<HandleCall | undefined> {
    const find = () => hosts.find(host, context);
    if ((await find()) === undefined) return undefined;
    const target = { ...targetOfHost(context, headers), url: undefined, isOnOwnHost: false };
    return () => handle(context, { ...target, find });
  }

  return (context) => {
    const host = hosts.candidateOf(context);
    const below = () => {
      if (!isCallAddress(context.request.url ?? '')) return undefined;
      const { key, ...target } = targetBelowProxy(context, headers);
      const find = key === undefined ? undefined : () => proxies.byKey(key, originOf(context));
      return () => handle(context, { ...target, find, isOnOwnHost: true });
    };
    if (host === undefined) return below();
    return byHost(host, context).then((handler) => handler ?? below());
  };
}

/** A response without an end would otherwise hold up the requests of others. */
function pacedResponse(response: ProxyResponse, { share }: RequestContext): ProxyResponse {
  if (share === undefined) return response;
  const body = paced(share);
  // What fails destroys both.
  pipeline(response.body, body, () => undefined);
  return { ...response, body };
}

function requireCallMethod(method: string): void {
  if (isCallMethod(method)) return;
  const allow = callMethods.join(', ');
  throw new VaultError('method_not_allowed', {
    public: `A proxy is called with ${allow}.`,
    headers: { allow },
  });
}

/** Methods of which a second call changes nothing that the first did not (RFC 9110, section 9.2.2). */
const repeatableMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'DELETE']);

/**
 * When a call breaks off, the vault cannot know whether the destination acted, so it stores no response. A caller that
 * relies on a stored response is refused, unless the call can be repeated safely.
 */
function refuseIdempotencyKey(
  { headers, request, method }: RequestContext,
  own: ServiceHeaders,
): void {
  if (repeatableMethods.has(method)) return;
  if (own.read(headers, 'idempotency-key') === undefined) return;
  throw invalidCall(own.nameAsSent(request, 'idempotency-key'), 'is not supported for proxies');
}

/** The order in which every request is handled. */

import { type Clock, second } from '../base/clock.ts';
import { invalid, VaultError } from '../base/errors.ts';
import { createKeyedMutex } from '../base/keyed-mutex.ts';
import { ifMatching } from '../rules/entity-tag.ts';
import { type Decide, type Performing, perform, type ReplySlot } from '../rules/operation.ts';
import type { Reply } from '../rules/reply.ts';
import type { Store } from '../store/store.ts';
import { unverifiedColumns } from '../store/stored-row.ts';
import type { Idempotency } from './idempotency/idempotency.ts';
import type { RequestAdmission } from './limits/admission.ts';
import type { OpenLimit } from './limits/open-limit.ts';
import { countParts, type Holder, type RouteLimits } from './limits/rate-limit.ts';
import { checkMediaType, readBody } from './protocol/body.ts';
import { FixedBody } from './protocol/fixed-body.ts';
import type { ServiceHeaders } from './protocol/headers.ts';
import { parseIfMatch } from './protocol/if-match.ts';
import { type Handle, jsonMediaType, type RequestContext } from './protocol/request-context.ts';
import type { OpenRoute, Route, StreamRoute, WholeRoute } from './protocol/route.ts';
import { createSend } from './protocol/sending.ts';
import { compileSerializer } from './protocol/serialization.ts';
import type { Streaming } from './protocol/streaming.ts';
import { createValidation } from './protocol/validation.ts';

/** A request admitted before that is admitted again when it is handled: no key outlives its end by a second. */
const admissionMs = second / 2;

export interface HandlingOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly headers: ServiceHeaders;
  readonly rateLimits: (route: Route) => RouteLimits;
  readonly admission: RequestAdmission;
  readonly idempotency: Idempotency;
  readonly streaming: Streaming;
  /** The prefix of a `Location`; without it, the `Location` is a path. */
  readonly publicUrl: string | undefined;
}

/** The two ways to respond: what is decided as a whole is sent afterwards; a stream sends while it is decided. */
interface Responding<R> {
  reply(context: RequestContext): Promise<R>;
  send(reply: R, context: RequestContext): Promise<void> | undefined;
}

type RunOperation = (slot?: ReplySlot) => Promise<Reply>;

/** Handlers of routes; requests of all of them with one serial key run one after the other. */
export function createHandling(options: HandlingOptions): (route: Route) => Handle {
  const { store, clock, headers, admission, idempotency, streaming } = options;
  const send = createSend(options);
  const inOrder = createKeyedMutex();

  function handlerOf(route: Route): Handle {
    const limits = options.rateLimits(route);
    return 'stream' in route
      ? inOrderOfSteps(route, limits, inParts(route, limits))
      : inOrderOfSteps(route, limits, whole(route, limits));
  }

  function inOrderOfSteps<R>(route: Route, limits: RouteLimits, respond: Responding<R>): Handle {
    const validate = createValidation(route);

    // Whatever is known need not be waited for: each wait makes promises, which together cost as much as a step.
    return async (context) => {
      const sender = admission.senderOf(context);
      const counting = limits.byAddress(sender, context);
      if (counting) await counting;
      // Before a body is read.
      const admittedAt = clock.now();
      const count = (holder: Holder) => limits.byKey({ ...sender, holder }, context);
      const admitted = admission.admit(route, context, count);
      context.caller = admitted instanceof Promise ? await admitted : admitted;
      checkMediaType(route, context);
      const reading = readBody(route, context);
      if (reading) await reading;
      validate(context);
      // While a body arrives slowly, its key may be revoked.
      if (clock.now() - admittedAt >= admissionMs) {
        context.caller = await admission.admit(route, context);
      }
      const sending = respond.send(await respond.reply(context), context);
      if (sending) await sending;
    };
  }

  function whole(route: WholeRoute, limits: RouteLimits): Responding<Reply> {
    const serialize = compileSerializer(route.reply.body);
    const caller = async (context: RequestContext) => admission.admit(route, context);
    const { status } = route.reply;
    return {
      reply: (context) => {
        const counting = countParts(route, context, limits.ofBody(admission.senderOf(context)));
        return counting ? counting.then(() => replyTo(route, context)) : replyTo(route, context);
      },
      send: (reply, context) => send(reply, context, { status, serialize, caller }),
    };
  }

  /** The operation runs, once per idempotency key where there is one. */
  function replyTo(route: WholeRoute, context: RequestContext): Promise<Reply> {
    const { caller } = context;
    const run = operationOf(route, context);
    const key = headers.read(context.headers, 'idempotency-key');
    // A key is an order for one effect; reading twice and removing twice are harmless as they are.
    if (!caller || key === undefined || route.method === 'GET' || route.method === 'DELETE') {
      return run();
    }
    const header = () => headers.nameAsSent(context.request, 'idempotency-key');
    return idempotency({ caller, route: scopeOf(route, context), key, header }, run);
  }

  function operationOf(route: WholeRoute, context: RequestContext): RunOperation {
    const { caller, params, query, body } = context;
    const input = { caller, params, query, body } as never;
    const performing = performingOf(route, context);
    const condition = parseIfMatch(context.headers['if-match']);
    const handle = (): Decide => {
      const decide = route.handle(input);
      return 'route' in performing
        ? ifMatching(decide, { ...performing, route, condition })
        : decide;
    };
    const run: RunOperation = (slot) => perform(performing, handle(), slot);
    const order = route.serialKey?.(input);
    return order === undefined ? run : (slot) => inOrder(order, () => run(slot));
  }

  function performingOf(route: WholeRoute, context: RequestContext): Performing {
    const { caller } = context;
    if (!caller) return { store, actor: undefined };
    const stands = async () => {
      const row = await store.get('tenants', { tenant_id: caller.tenant.id });
      // Once its tenant is deleted, all requests of the code are refused, and its result says so. Whether the mark
      // of deletion is the vault's own does not matter: without it, admission decides, and verifies everything.
      if (row && unverifiedColumns(row).deleted_at === null) await admission.admit(route, context);
    };
    return { store, actor: caller, clock, route, stands };
  }

  function inParts(route: StreamRoute, limits: RouteLimits): Responding<void> {
    const serialize = compileSerializer(route.reply.body);
    return {
      reply: async (context) => {
        refuseIdempotencyKey(context, headers);
        const sender = admission.senderOf(context);
        const count = limits.ofBody(sender);
        const caller = async () => admission.admit(route, context);
        await streaming.respond({ context, route, serialize, caller, key: sender.key, count });
      },
      send: () => undefined,
    };
  }

  return handlerOf;
}

/** A route that needs no key. */
export function openHandlerOf(route: OpenRoute, limit: Pick<OpenLimit, 'count'>): Handle {
  const { handle, isLimited, isExact, path } = route;
  return async (context) => {
    const [asSent] = (context.request.url ?? '').split('?', 1);
    if (isExact && asSent !== path) {
      throw new VaultError('not_found', { public: 'There is no such route.' });
    }
    if (isLimited) await limit.count(context.address);
    const {
      status,
      body,
      mediaType = jsonMediaType,
      headers = {},
    } = await handle(context.params as Readonly<Record<string, string>>);
    if (body instanceof FixedBody) return sendFixed(context, { status, body, mediaType, headers });
    context.setHeaders(headers);
    if (body === undefined) context.send(status);
    else if (typeof body === 'string') context.send(status, body, mediaType);
    else context.send(status, JSON.stringify(body), jsonMediaType);
  };
}

interface FixedReply {
  readonly status: number;
  readonly body: FixedBody;
  readonly mediaType: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** A client that names the tag of what it has in `If-None-Match` gets no body. */
async function sendFixed(
  context: RequestContext,
  { status, body, mediaType, headers }: FixedReply,
): Promise<void> {
  const { bytes, etag, encoding } = await body.encodedFor(
    String(context.headers['accept-encoding'] ?? ''),
  );
  context.setHeaders({ 'cache-control': 'no-cache', ...headers, etag, vary: 'accept-encoding' });
  if (namesTag(context.headers['if-none-match'], etag)) return context.send(304);
  if (encoding !== undefined) context.setHeader('content-encoding', encoding);
  context.send(status, bytes, mediaType);
}

/** RFC 9110, 13.1.2: weak comparison, which also matches tags that a compressing proxy has made weak. */
function namesTag(given: string | undefined, etag: string): boolean {
  if (given === undefined) return false;
  return given.split(',').some((one) => ['*', etag].includes(one.trim().replace(/^W\//, '')));
}

/**
 * Method and path: the pattern with its parameters, each encoded in one way, so that every spelling of a path gives
 * the same scope. Encoded parameters hold no line breaks and no characters that a database would refuse.
 */
function scopeOf({ method, path }: WholeRoute, { params }: RequestContext): string {
  const values = params as Readonly<Record<string, string | undefined>>;
  return `${method} ${path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(values[name] ?? ''))}`;
}

/** The vault stores no response of a stream, so it could not keep the promise of an idempotency key. */
function refuseIdempotencyKey(context: RequestContext, headers: ServiceHeaders): void {
  if (context.method === 'GET') return;
  if (headers.read(context.headers, 'idempotency-key') === undefined) return;
  const header = headers.nameAsSent(context.request, 'idempotency-key');
  throw invalid(header, 'cannot be used with a bulk request; give each line an id instead');
}

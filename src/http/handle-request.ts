/** The order in which every request is handled. */
import type { Idempotency } from '../gate/idempotency.ts';
import { type Clock, second } from '../lib/clock.ts';
import { invalid, VaultError } from '../lib/errors.ts';
import { createSerial } from '../lib/serial.ts';
import { perform, performingFor, type ReplySlot } from '../rules/operation.ts';
import { loggingFailures, whileStanding } from '../rules/refusal.ts';
import type { Reply } from '../rules/reply.ts';
import type { Store } from '../store/store.ts';
import type { RequestAdmission } from './limits/admission.ts';
import type { OpenLimit } from './limits/open-limit.ts';
import { countParts, type Holder, type RouteLimits } from './limits/rate-limit.ts';
import { checkMediaType, readBody } from './protocol/body.ts';
import { type Exchange, jsonMediaType } from './protocol/exchange.ts';
import type { ServiceHeaders } from './protocol/headers.ts';
import type { OpenRoute, Route, StreamRoute, WholeRoute } from './protocol/route.ts';
import { createSend } from './protocol/sending.ts';
import { compileSerializer } from './protocol/serialization.ts';
import type { Streaming } from './protocol/streaming.ts';
import { createValidation } from './protocol/validation.ts';

/** What was admitted by then is admitted again before it is handled: no key outlives its end by a second. */
const admissionMs = second / 2;

export interface HandlingOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly headers: ServiceHeaders;
  readonly rateLimits: (route: Route) => RouteLimits;
  readonly admission: RequestAdmission;
  readonly idempotency: Idempotency;
  readonly streaming: Streaming;
  /** What a `Location` begins with; without it, it is a path. */
  readonly publicUrl: string | undefined;
}

/** Responds, or fails before anything of the response has left. */
export type Handle = (exchange: Exchange) => Promise<void>;

type RunOperation = (slot?: ReplySlot) => Promise<Reply>;

/** Handlers of routes; requests of all of them with one serial key run one after the other. */
export function createHandling(options: HandlingOptions): (route: Route) => Handle {
  const { store, clock, headers, admission, idempotency, streaming } = options;
  const send = createSend(options);
  const inOrder = createSerial();

  function handlerOf(route: Route): Handle {
    const limits = options.rateLimits(route);
    const validate = createValidation(route);
    const respond = 'stream' in route ? inParts(route, limits) : whole(route, limits);

    // Whatever is known need not be waited for: each wait makes promises, which together cost as much as a step.
    return async (exchange) => {
      const sender = admission.senderOf(exchange);
      const counting = limits.byAddress(sender, exchange);
      if (counting) await counting;
      // Before a body is read.
      const admittedAt = clock.now();
      const count = (holder: Holder) => limits.byKey({ ...sender, holder }, exchange);
      const admitted = admission.admit(route, exchange, count);
      exchange.caller = admitted instanceof Promise ? await admitted : admitted;
      checkMediaType(route, exchange);
      const reading = readBody(route, exchange);
      if (reading) await reading;
      validate(exchange);
      // While a body arrives slowly, its key may be revoked.
      if (clock.now() - admittedAt >= admissionMs) {
        exchange.caller = await admission.admit(route, exchange);
      }
      await respond(exchange);
    };
  }

  function whole(route: WholeRoute, limits: RouteLimits): Handle {
    const serialize = compileSerializer(route.reply.body);
    return async (exchange) => {
      const counting = countParts(route, exchange, limits.ofBody(admission.senderOf(exchange)));
      if (counting) await counting;
      const reply = await replyTo(route, exchange);
      const caller = async () => admission.admit(route, exchange);
      const sending = send(reply, { exchange, route, serialize, caller });
      if (sending) await sending;
    };
  }

  /** The operation runs, once per idempotency key where there is one. */
  function replyTo(route: WholeRoute, exchange: Exchange): Promise<Reply> {
    const { caller } = exchange;
    const run = operationOf(route, exchange);
    const key = headers.read(exchange.headers, 'idempotency-key');
    // A key is an order for one effect; reading twice and removing twice are harmless as they are.
    if (!caller || key === undefined || route.method === 'GET' || route.method === 'DELETE') {
      return run();
    }
    const header = () => headers.nameAsSent(exchange.request, 'idempotency-key');
    return idempotency({ caller, route: scopeOf(route, exchange), key, header }, run);
  }

  function operationOf(route: WholeRoute, exchange: Exchange): RunOperation {
    const { caller, params, query, body } = exchange;
    const input = { caller, params, query, body } as never;
    const decided = () => {
      const decide = route.handle(input);
      if (!caller) return decide;
      const logged = { caller, clock, route };
      const stands = async () => {
        const row = await store.get('tenants', { tenant_id: caller.tenant.id });
        // Code of a deleted tenant has been refused everything since, and its result says so.
        if (row?.deleted_at === null) await admission.admit(route, exchange);
      };
      return whileStanding(loggingFailures(decide, logged), { ...logged, stands });
    };
    const performing = performingFor(store, caller, { clock, route });
    const run: RunOperation = (slot) => perform(performing, decided(), slot);
    const order = route.serialKey?.(input);
    return order === undefined ? run : (slot) => inOrder(order, () => run(slot));
  }

  function inParts(route: StreamRoute, limits: RouteLimits): Handle {
    const serialize = compileSerializer(route.reply.body);
    return async (exchange) => {
      refuseIdempotencyKey(exchange, headers);
      const sender = admission.senderOf(exchange);
      const count = limits.ofBody(sender);
      const caller = async () => admission.admit(route, exchange);
      await streaming.answer({ exchange, route, serialize, caller, key: sender.key, count });
    };
  }

  return handlerOf;
}

/** A route that needs no key. */
export function openHandlerOf(route: OpenRoute, limit: OpenLimit): Handle {
  const { handle, isLimited, isExact, path } = route;
  return async (exchange) => {
    const [asSent] = (exchange.request.url ?? '').split('?', 1);
    if (isExact && asSent !== path) {
      throw new VaultError('not_found', { public: 'There is no such route.' });
    }
    if (isLimited) await limit(exchange.address);
    const { status, body, mediaType = jsonMediaType, etag, headers = {} } = await handle();
    exchange.setHeaders(headers);
    if (etag !== undefined) {
      exchange.setHeaders({ etag, 'cache-control': 'no-cache' });
      if (namesTag(exchange.headers['if-none-match'], etag)) return exchange.send(304);
    }
    if (body === undefined) exchange.send(status);
    else if (typeof body === 'string' || body instanceof Uint8Array) {
      exchange.send(status, body, mediaType);
    } else exchange.send(status, JSON.stringify(body), jsonMediaType);
  };
}

/** RFC 9110, 13.1.2: weak comparison, also with what a proxy that compresses has made weak. */
function namesTag(given: string | undefined, etag: string): boolean {
  if (given === undefined) return false;
  return given.split(',').some((one) => ['*', etag].includes(one.trim().replace(/^W\//, '')));
}

/**
 * Method and path, the same for every way to write one path: the pattern with its parameters, each encoded in
 * one way. What is encoded holds no line break, and nothing that a database would refuse.
 */
function scopeOf({ method, path }: WholeRoute, { params }: Exchange): string {
  const values = params as Readonly<Record<string, string | undefined>>;
  return `${method} ${path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(values[name] ?? ''))}`;
}

/** No response is stored of a stream, so its key would promise what is not so. */
function refuseIdempotencyKey(exchange: Exchange, headers: ServiceHeaders): void {
  if (exchange.method === 'GET') return;
  if (headers.read(exchange.headers, 'idempotency-key') === undefined) return;
  const header = headers.nameAsSent(exchange.request, 'idempotency-key');
  throw invalid(header, 'cannot be used with a bulk request; give each line an id instead');
}

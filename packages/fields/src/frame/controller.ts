/**
 * The frame that calls the vault. It takes values from the fields of its page, within the vault's origin, and gives
 * the page the response without them.
 */
import type { BodyRequest, FrameRequest, Problem, ProxyTarget } from '../protocol.ts';
import { CallError, header, publicKey, send, sendOk } from './api.ts';
import { conceal } from './conceal.ts';
import { offerController, type RegisteredField } from './registry.ts';
import type { Word, Words } from './words.ts';

interface Owned {
  readonly field: RegisteredField;
  readonly owner: Window;
}

export interface CallHandling {
  handle(request: FrameRequest): Promise<unknown>;
}

interface Filled {
  readonly body: unknown;
  readonly secrets: readonly string[];
}

export function createController(): CallHandling {
  const fields = new Map<string, Owned>();
  /** Of the page; it calls in place of the public key. */
  let session: string | undefined;
  /** Created here: the page never has its key. It reveals, and calls proxies. */
  let ownSession: string | undefined;

  offerController({
    register: (element, field, owner) => {
      fields.set(element, { field, owner });
      owner.addEventListener('pagehide', () => {
        if (fields.get(element)?.field === field) fields.delete(element);
      });
    },
    enter: (element, isAtEnd) => fields.get(element)?.field.enter(isAtEnd) ?? false,
    reveal: (token) => {
      const key = ownSession ?? session;
      if (key === undefined) {
        throw new CallError({
          code: 'no_session',
          message:
            'Create a session with fields.sessions.create(), and authorize its nonce on your server.',
        });
      }
      return sendOk({ method: 'GET', path: `/tokens/${encodeURIComponent(token)}`, key });
    },
  });

  async function fill({ body, places }: BodyRequest): Promise<Filled> {
    const root = { body: structuredClone(body) };
    const secrets: string[] = [];
    for (const { path, element, part } of places) {
      const owned = fields.get(element);
      if (!owned || owned.owner.closed) {
        const message = 'A field of this request is not in the page, or belongs to another key.';
        throw new CallError({ code: 'field_missing', message });
      }
      put(root, ['body', ...path], await owned.field.read(part ?? ''));
      secrets.push(...owned.field.secrets());
    }
    return { body: root.body, secrets };
  }

  async function toVault(
    request: BodyRequest & { readonly idempotencyKey?: string | undefined },
    call: { readonly method: string; readonly path: string; readonly mediaType?: string },
  ): Promise<unknown> {
    refuseExpressions(request);
    refusePlaces(request, call.path);
    const { body, secrets } = await fill(request);
    const headers =
      request.idempotencyKey === undefined
        ? {}
        : { [header('IDEMPOTENCY-KEY')]: request.idempotencyKey };
    try {
      const result = await sendOk({ ...call, key: session ?? publicKey, body, headers });
      return conceal(result, secrets);
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      throw new CallError(conceal(error.problem, secrets) as Problem);
    }
  }

  async function toProxy(request: BodyRequest & ProxyTarget): Promise<unknown> {
    refuseReadingBody(request);
    const { body, secrets } = await fill(request);
    if (secrets.some((secret) => secret.includes('{{'))) {
      throw new CallError({
        code: 'expression_refused',
        message: 'A field has an expression in it.',
      });
    }
    const answered = await send({
      method: request.method ?? 'POST',
      path: proxyPath(request.path),
      key: ownSession ?? session ?? publicKey,
      headers: {
        ...passedHeaders(request.headers),
        [header('PROXY-KEY')]: request.proxy,
        // A proxy that takes calls without a key may belong to another tenant.
        [header('PROXY-REQUIRE-KEY')]: 'true',
      },
      ...(body !== undefined && { body }),
    });
    return conceal(answered, secrets);
  }

  /** A session of another application would store the values where its owner reads them. */
  async function useSession(key: string | undefined): Promise<void> {
    session = undefined;
    if (key === undefined) return;
    const applicationOf = async (one: string) =>
      ((await sendOk({ method: 'GET', path: '/applications/key', key: one })) as { id: string }).id;
    const [own, given] = await Promise.all([applicationOf(publicKey), applicationOf(key)]);
    if (own !== given) {
      const message = 'The session was not created with the key of these fields.';
      throw new CallError({ code: 'foreign_session', message });
    }
    session = key;
  }

  async function createSession(): Promise<unknown> {
    const created = (await sendOk({ method: 'POST', path: '/sessions', key: publicKey })) as {
      readonly session_key: string;
      readonly nonce: string;
      readonly expires_at: string;
    };
    ownSession = created.session_key;
    // The page authorizes it without ever having its key.
    return { nonce: created.nonce, expires_at: created.expires_at };
  }

  return {
    handle: (request) => {
      switch (request.operation) {
        case 'tokens.create':
          return toVault(request, { method: 'POST', path: '/tokens' });
        case 'tokens.update': {
          const path = `/tokens/${encodeURIComponent(request.token)}`;
          const mediaType = 'application/merge-patch+json';
          return toVault(request, { method: 'PATCH', path, mediaType });
        }
        case 'tokenize':
          return toVault(request, { method: 'POST', path: '/tokenize' });
        case 'tokenIntents.create':
          return toVault(request, { method: 'POST', path: '/token-intents' });
        case 'proxy':
          return toProxy(request);
        case 'sessions.create':
          return createSession();
        case 'session':
          return useSession(request.key);
        default:
          return Promise.reject(new Error('not an operation of this frame'));
      }
    },
  };
}

/** What could be evaluated over a value, and return a part of it. Types have masks that are meant for the page. */
function refuseExpressions({ body }: BodyRequest): void {
  if (!/\{\{|\{%/.test(JSON.stringify(body ?? null))) return;
  throw new CallError({
    code: 'expression_refused',
    message:
      'A request with fields has no expressions: a page could read values with them. ' +
      "Leave out id, mask, search_indexes and fingerprint_expression, so that those of the token's type apply.",
  });
}

/** Attributes of a token that are stored and shown as they are. */
const shownAttributes: ReadonlySet<string | number> = new Set([
  ...['id', 'type', 'metadata', 'containers', 'mask', 'search_indexes', 'expires_at'],
  'fingerprint_expression',
]);

/** Values go into data alone. */
function refusePlaces({ places }: BodyRequest, path: string): void {
  const isData = ({ path: [first] }: (typeof places)[number]) => first === 'data';
  const isShown = (place: (typeof places)[number]) =>
    place.path.some((key) => shownAttributes.has(key));
  const isWrong = path === '/tokenize' ? places.some(isShown) : !places.every(isData);
  if (!isWrong) return;
  throw new CallError({ code: 'place_refused', message: 'A field can only be part of data.' });
}

/** Below the path of proxies, whatever dots it has; the key of the proxy is not in it. */
function proxyPath(path = ''): string {
  const url = new URL(`/proxy/${path.replace(/^\/+/, '')}`, location.origin);
  const isOfProxies = url.origin === location.origin && url.pathname.startsWith('/proxy/');
  if (isOfProxies && !/proxy-key/i.test(decodeURIComponent(url.search))) {
    return `${url.pathname.replace(/^\/proxy\/$/, '/proxy')}${url.search}`;
  }
  throw new CallError({ code: 'path_refused', message: 'This is not a path of a proxy.' });
}

/** Headers of the vault itself decide who calls and where the request goes: those come from this frame alone. */
function passedHeaders(headers: ProxyTarget['headers'] = {}): Readonly<Record<string, string>> {
  const isOfVault = (name: string) =>
    /-(?:api-key|proxy-[a-z-]*|encrypted|idempotency-key|trace-id)$/i.test(name);
  if (!Object.keys(headers).some(isOfVault)) return headers;
  throw new CallError({
    code: 'header_refused',
    message: 'A page cannot set headers of the vault.',
  });
}

/**
 * An expression in a header or a path can read the body, in which the values of the fields are. Whether it fails, or
 * what the destination gives back, would tell the page about them.
 */
function refuseReadingBody({ headers = {}, path = '' }: ProxyTarget): void {
  const texts = [path, ...Object.values(headers)];
  const spelled = texts.flatMap((text) => [text, unescaped(text)]);
  if (!spelled.some((text) => text.includes('{{'))) return;
  throw new CallError({
    code: 'expression_refused',
    message: 'Write expressions into the body: a header or a path of a page cannot have one.',
  });
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function put(root: object, path: readonly (string | number)[], value: unknown): void {
  let place = root as Record<string | number, unknown>;
  const last = path.at(-1) ?? '';
  // A page that names the prototype of an object must not reach it, at no step.
  for (const key of path.slice(0, -1)) {
    if (!Object.hasOwn(place, key)) return;
    place = place[key] as typeof place;
  }
  if (Object.hasOwn(place, last)) place[last] = value;
}

/** What customers read; all others are for the owner of the page. */
const customerWords: Readonly<Record<string, Word>> = {
  incomplete: 'marked',
  offline: 'offline',
  vault_unreachable: 'unreachable',
};

/** What the page learns of what was thrown, which may come from another frame with classes of its own. */
export function problemOf(error: unknown, words: Words): Problem {
  const { problem } = (error ?? {}) as { readonly problem?: Problem };
  const { code, ...rest } = problem ?? {
    code: 'failed',
    message: 'The frame of the vault could not do that.',
  };
  return { code, ...rest, customerMessage: words.of(customerWords[code] ?? 'refused') };
}

/** Rules of rate limits: the form of a rule, the file that holds them, and the presets. */
import Type, { type Static } from 'typebox';
import type { FailureLimit } from '../../access/failure-limit.ts';
import { second } from '../../base/clock.ts';
import type { HolderKind } from '../../rules/permissions.ts';
import { compileValidator } from '../protocol/validation.ts';

/**
 * What is counted separately: each network address, each key, or each application with all its keys and
 * the sessions that they created; also two of them together, such as each key at each address. `proxy` counts
 * the calls of a proxy that require no key, which no limit of keys or applications counts.
 */
const subjects = ['address', 'key', 'application', 'proxy'] as const;
export type LimitSubject = (typeof subjects)[number];

export interface RateLimitRule {
  readonly per: readonly LimitSubject[];
  /** Only requests with keys of these kinds; all kinds when absent. */
  readonly kinds: readonly HolderKind[] | undefined;
  /** Only these routes, which then share their counters; all routes when absent. For example `POST /tokens`. */
  readonly routes: readonly string[] | undefined;
  readonly requests: number;
  readonly windowMs: number;
  /** How long a caller over the limit is refused; 0 means until the window ends. */
  readonly blockMs: number;
}

export interface RateLimits {
  readonly rules: readonly RateLimitRule[];
  /** For one network address; when absent, attempts are not limited. */
  readonly failedAuthentication: FailureLimit | undefined;
  /** The same for the OpenAPI document, the reference and the metrics, which need no key. */
  readonly description: AddressLimit | undefined;
}

export type AddressLimit = Pick<FailureLimit, 'requests' | 'windowMs'>;

const strict = { additionalProperties: false };

const rule = Type.Object(
  {
    per: Type.Array(Type.Enum([...subjects]), { minItems: 1, maxItems: 2 }),
    key_kinds: Type.Optional(
      Type.Array(Type.Enum(['public', 'private', 'management', 'session']), { minItems: 1 }),
    ),
    routes: Type.Optional(Type.Array(Type.String({ maxLength: 200 }), { minItems: 1 })),
    requests: Type.Integer({ minimum: 1, maximum: 1_000_000_000 }),
    window_seconds: Type.Integer({ minimum: 1, maximum: 86_400 }),
    block_seconds: Type.Optional(Type.Integer({ minimum: 0, maximum: 86_400 })),
  },
  strict,
);

const failures = Type.Object(
  {
    requests: Type.Integer({ minimum: 1, maximum: 1_000_000_000 }),
    window_seconds: Type.Integer({ minimum: 1, maximum: 86_400 }),
  },
  strict,
);

const file = Type.Object(
  {
    limits: Type.Array(rule, { maxItems: 100 }),
    failed_authentication: Type.Optional(failures),
  },
  strict,
);

const validate = compileValidator(file, 'body');

/**
 * Reads the JSON of a file of limits.
 * @throws VaultError `validation_failed` naming every attribute that is wrong.
 */
export function parseRateLimits(json: unknown): RateLimits {
  const validated = validate(json);
  if ('error' in validated) throw validated.error;
  const { limits, failed_authentication: failed } = validated.value as Static<typeof file>;
  const rules = limits.map((limit) => ({
    per: limit.per,
    kinds: limit.key_kinds,
    routes: limit.routes?.map(patternOf),
    requests: limit.requests,
    windowMs: limit.window_seconds * second,
    blockMs: (limit.block_seconds ?? 0) * second,
  }));
  if (failed === undefined) return { rules, failedAuthentication, description };
  const { requests, window_seconds } = failed;
  return {
    rules,
    failedAuthentication: { requests, windowMs: window_seconds * second },
    description,
  };
}

/** `/tokens/{id}`, as documents write it, is `/tokens/:id`, as routes are declared. */
function patternOf(route: string): string {
  return route.replaceAll(/\{(\w+)\}/g, ':$1');
}

const perAddress = (requests: number, ...routes: string[]): RateLimitRule => ({
  per: ['address'],
  kinds: undefined,
  routes: routes.length === 0 ? undefined : routes,
  requests,
  windowMs: 10 * second,
  blockMs: 10 * second,
});

const failedAuthentication: FailureLimit = { requests: 60, windowMs: 10 * second };

/** Prometheus scrapes every few seconds, and a browser loads it once. */
const description: AddressLimit = { requests: 200, windowMs: 10 * second };

/**
 * A public key lies in every visitor's browser, so each visitor is counted by itself, with the sessions
 * that the key creates: there may be one for each request.
 */
const perVisitor: RateLimitRule = {
  per: ['application', 'address'],
  kinds: ['public', 'session'],
  routes: undefined,
  requests: 60,
  windowMs: 10 * second,
  blockMs: 0,
};

/** Any client may call a proxy that requires no key. */
const perProxyVisitor: RateLimitRule = {
  per: ['proxy', 'address'],
  kinds: undefined,
  routes: undefined,
  requests: 50,
  windowMs: 10 * second,
  blockMs: 0,
};

/** In force unless the operator chooses otherwise. */
export const rateLimitsDefault: RateLimits = {
  rules: [perVisitor, perProxyVisitor],
  failedAuthentication,
  description,
};

/** Limits by name. */
export const rateLimitPresets: Readonly<Record<string, RateLimits>> = {
  off: { rules: [], failedAuthentication: undefined, description: undefined },
  /** The public product's table until July 16, 2024. Its row "Portal" has no counterpart here. */
  'legacy-2024': {
    rules: [
      perAddress(1000),
      perAddress(50, 'POST /tokens/search'),
      perAddress(100, 'GET /tokens'),
      perAddress(200, 'POST /tokens', 'POST /tokenize'),
    ],
    failedAuthentication,
    description,
  },
};

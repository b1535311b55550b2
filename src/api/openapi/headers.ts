/** The headers of requests and responses, as components. */
import { idempotencyKeyLengthMax } from '../../http/idempotency/idempotency.ts';
import type { Schema } from './components.ts';

export interface HeaderComponents {
  readonly key: string;
  /** Parameters by their name as a component. */
  readonly parameters: Readonly<
    Record<'IdempotencyKey' | 'IfMatch' | 'TraceId' | 'ProxyKey' | 'ProxyUrl', Schema>
  >;
  /** Headers of responses by their name as a component. */
  readonly responses: Readonly<Record<string, Schema>>;
  /** Headers of a response of this status, as references. */
  of(status: number): Schema;
  /** That of a response about what has an entity tag, as a reference. */
  readonly etag: Schema;
}

const count = { type: 'integer', minimum: 0 };
const oneOf = (...statuses: readonly number[]) => statuses;

/** @param prefix such as `SVC`. */
export function headersOf(prefix: string): HeaderComponents {
  const trace = `${prefix}-TRACE-ID`;
  const rows = [
    {
      name: trace,
      component: 'TraceId',
      statuses: undefined,
      description: 'The trace id of the request, or one that the vault made. Name it in questions.',
      schema: { type: 'string' },
    },
    {
      name: 'Location',
      component: 'Location',
      statuses: oneOf(201),
      description: 'Where what was created can be read.',
      schema: { type: 'string', format: 'uri-reference' },
    },
    {
      name: 'Retry-After',
      component: 'RetryAfter',
      statuses: oneOf(429, 503),
      description: 'After how many seconds to try again.',
      schema: count,
    },
    ...['Limit', 'Remaining', 'Reset'].map((name, at) => ({
      name: `RateLimit-${name}`,
      component: `RateLimit${name}`,
      statuses: oneOf(429),
      description: limitMeanings[at] ?? '',
      schema: count,
    })),
  ];
  return {
    key: `${prefix}-API-KEY`,
    parameters: {
      IdempotencyKey: {
        name: `${prefix}-IDEMPOTENCY-KEY`,
        in: 'header',
        description:
          'A text of the caller’s choice, best a UUID. A request with a key that succeeded in the last 24 hours ' +
          'has no second effect and gets the response of the first; 409 while the first is still processed. With a ' +
          'public key it is a UUID, or has at least 22 characters.',
        schema: {
          type: 'string',
          minLength: 1,
          maxLength: idempotencyKeyLengthMax,
          pattern: '^[^\\u0000-\\u001f\\u007f-\\u009f]+$',
        },
        example: '7c1f7a52-3a0e-4f3b-9f4e-5d1a2b3c4d5e',
      },
      IfMatch: {
        name: 'If-Match',
        in: 'header',
        description:
          'Entity tags of states as `ETag` gave them, in quotes. Where the resource has none of them any more, ' +
          'nothing changes, and the response is 412. `*` stands for any state. Tags that something on the way has ' +
          'made weak (`W/"…"`) never match.',
        schema: { type: 'string', minLength: 1 },
        example: '"pV3n0cW7kq1xT9sZ4mBd"',
      },
      TraceId: {
        name: trace,
        in: 'header',
        description:
          'An id of the caller’s choice, of 1 to 100 visible characters of ASCII; the response carries it. Another ' +
          'text is ignored.',
        schema: { type: 'string' },
        example: 'checkout-4711',
      },
      ProxyKey: {
        name: `${prefix}-PROXY-KEY`,
        in: 'header',
        description:
          'The `key` of a configured proxy; a query parameter of that name in lower case works as well. Each call ' +
          'needs the key of a proxy or the URL of a destination.',
        schema: { type: 'string' },
        example: 'TEbUTUSDfcnpVwm3PGyKQc',
      },
      ProxyUrl: {
        name: `${prefix}-PROXY-URL`,
        in: 'header',
        description:
          'The https URL of a destination, for a call without a configured proxy. The key of a proxy takes precedence.',
        schema: { type: 'string', format: 'uri', pattern: '^https://' },
      },
    },
    responses: {
      ...Object.fromEntries(
        rows.map(({ component, description, schema }) => [component, { description, schema }]),
      ),
      ETag: {
        description:
          'The entity tag of the resource as it now is, whatever the caller may see of it. Another change gives it ' +
          'another tag. Send it as `If-Match` to change nothing that has changed since.',
        schema: { type: 'string' },
      },
    },
    etag: { ETag: { $ref: '#/components/headers/ETag' } },
    of: (status) =>
      Object.fromEntries(
        rows
          .filter(({ statuses }) => statuses === undefined || statuses.includes(status))
          .map(({ name, component }) => [name, { $ref: `#/components/headers/${component}` }]),
      ),
  };
}

const limitMeanings = [
  'How many requests the limit allows.',
  'How many of them are left.',
  'After how many seconds it begins again.',
];

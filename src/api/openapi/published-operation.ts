/** An operation as the document and the reference show it: its declaration, and what follows from it. */
import type { TSchema } from 'typebox';
import { type ErrorCode, errorKinds } from '../../base/errors.ts';
import { type HolderKind, permissions } from '../../rules/permissions.ts';
import type { Operation, Section } from '../declaration/operation.ts';

export interface PublishedOperation {
  readonly operation: Operation;
  readonly tag: string;
  /** `/tokens/{id}`. */
  readonly path: string;
  readonly description: string;
  /** The kinds of holders whose keys may call it. */
  readonly kinds: readonly HolderKind[];
  /** The errors it may return, by status. */
  readonly problems: ReadonlyMap<number, readonly ErrorCode[]>;
  readonly takesIdempotencyKey: boolean;
  /** Whether it changes what has an entity tag. */
  readonly takesIfMatch: boolean;
  readonly isStream: boolean;
}

/** What any request may come to. */
const everywhere: readonly ErrorCode[] = [
  'validation_failed',
  'malformed_request',
  'unauthenticated',
  'too_many_requests',
  'headers_too_large',
  'internal',
  'integrity',
  'unavailable',
  'overloaded',
];

/** What any request without a key may come to. */
export const openProblems: readonly ErrorCode[] = [
  'malformed_request',
  'too_many_requests',
  'headers_too_large',
];

export function publishedIn(sections: readonly Section[]): readonly PublishedOperation[] {
  return sections.flatMap(({ tag, operations }) =>
    operations.map((operation) => published(operation, tag)),
  );
}

/** `/tokens/{id}` of `/tokens/:id`. */
export function templateOf(path: string): string {
  return path.replace(/:(\w+)/g, '{$1}');
}

function published(operation: Operation, tag: string): PublishedOperation {
  const isStream = 'stream' in operation;
  return {
    operation,
    tag,
    path: templateOf(operation.path),
    description: [operation.description, accessTo(operation)].filter(Boolean).join('\n\n'),
    kinds: kindsOf(operation),
    problems: problemsOf(operation),
    takesIdempotencyKey: !isStream && ['POST', 'PUT', 'PATCH'].includes(operation.method),
    takesIfMatch: takesIfMatch(operation),
    isStream,
  };
}

function takesIfMatch({ tagged, method }: Operation): boolean {
  return tagged === true && ['PUT', 'PATCH', 'DELETE'].includes(method);
}

function kindsOf({ permission, kinds }: Operation): readonly HolderKind[] {
  if (kinds) return kinds;
  if (permission === 'any key') return ['private', 'public', 'management', 'session'];
  const held = permissions[permission].kinds;
  return held.includes('private') ? [...held, 'session'] : held;
}

function accessTo({ permission, kinds }: Operation): string {
  if (kinds) return `For ${kinds.join(' and ')} keys.`;
  if (permission === 'any key') return 'For any valid key.';
  return `Needs the permission \`${permission}\`.`;
}

/** Grouped by status, in the order of the statuses. */
export function byStatus(codes: readonly ErrorCode[]): ReadonlyMap<number, readonly ErrorCode[]> {
  const order = Object.keys(errorKinds);
  const sorted = [...new Set(codes)].sort((a, b) => order.indexOf(a) - order.indexOf(b));
  return Map.groupBy(sorted, (code) => errorKinds[code].status);
}

function problemsOf(operation: Operation): PublishedOperation['problems'] {
  const { method, params, body, permission, kinds, problems = [] } = operation;
  const has = (part: TSchema | undefined, ...codes: ErrorCode[]) => (part ? codes : []);
  const isWrite = method === 'POST' || method === 'PUT' || method === 'PATCH';
  return byStatus([
    ...everywhere,
    ...problems,
    ...(permission !== 'any key' || kinds ? (['forbidden'] as const) : []),
    ...has(params, 'not_found'),
    ...(takesIfMatch(operation) ? (['precondition_failed'] as const) : []),
    ...has(body, 'request_timeout', 'body_too_large'),
    ...(method === 'GET' ? [] : (['unsupported_media_type', 'conflict'] as const)),
    ...(isWrite ? (['body_too_large', 'request_timeout', 'insufficient_storage'] as const) : []),
  ]);
}

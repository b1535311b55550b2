/** An operation as it is described: its route, and what its section says about it. */
import type { TSchema } from 'typebox';
import { type ErrorCode, errorKinds } from '../../lib/errors.ts';
import { type HolderKind, permissions } from '../../rules/permissions.ts';
import type { Route } from '../protocol/route.ts';
import type { OperationRow } from './operations/operation-row.ts';
import { sections } from './operations/sections.ts';

export interface Operation {
  readonly id: string;
  readonly tag: string;
  readonly method: string;
  /** `/tokens/{id}`. */
  readonly path: string;
  readonly summary: string;
  readonly description: string;
  /** Whose keys may call it. */
  readonly kinds: readonly HolderKind[];
  readonly route: Route;
  readonly row: OperationRow | undefined;
  /** What it may be refused with, by status. */
  readonly problems: ReadonlyMap<number, readonly ErrorCode[]>;
  readonly takesIdempotencyKey: boolean;
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

/** In the order of the sections; a route that no section has comes last. */
export function operationsOf(routes: readonly Route[]): readonly Operation[] {
  const byName = new Map(routes.map((route) => [nameOf(route), route]));
  const described = sections.flatMap(({ tag, operations }) =>
    Object.entries(operations).flatMap(([name, row]) => {
      const route = byName.get(name);
      return route ? [operationOf(route, tag, row)] : [];
    }),
  );
  const known = new Set(described.map(({ route }) => route));
  const others = routes.filter((route) => !known.has(route));
  return [...described, ...others.map((route) => operationOf(route, 'Other', undefined))];
}

function operationOf(route: Route, tag: string, row: OperationRow | undefined): Operation {
  const isStream = 'stream' in route;
  const { method } = route;
  return {
    id: row?.id ?? derivedId(route),
    tag,
    method,
    path: templateOf(route.path),
    summary: route.summary,
    description: [row?.description, accessTo(route)].filter(Boolean).join('\n\n'),
    kinds: kindsOf(route),
    route,
    row,
    problems: problemsOf(route, row?.problems ?? []),
    takesIdempotencyKey: !isStream && ['POST', 'PUT', 'PATCH'].includes(method),
    isStream,
  };
}

function nameOf({ method, path }: Route): string {
  return `${method} ${path}`;
}

/** `/tokens/:id` as `/tokens/{id}`. */
function templateOf(path: string): string {
  return path.replace(/:(\w+)/g, '{$1}');
}

/** `GET /a/:id/b-c` as `getAIdBC`. */
function derivedId({ method, path }: Route): string {
  const words = path.split(/\W+/).filter(Boolean);
  return (
    method.toLowerCase() + words.map((word) => word[0]?.toUpperCase() + word.slice(1)).join('')
  );
}

function kindsOf({ permission, kinds }: Route): readonly HolderKind[] {
  if (kinds) return kinds;
  if (permission === 'any key') return ['private', 'public', 'management', 'session'];
  const held = permissions[permission].kinds;
  return held.includes('private') ? [...held, 'session'] : held;
}

function accessTo(route: Route): string {
  const { permission, kinds } = route;
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

function problemsOf(route: Route, own: readonly ErrorCode[]): Operation['problems'] {
  const { method, params, body, permission, kinds } = route;
  const has = (part: TSchema | undefined, ...codes: ErrorCode[]) => (part ? codes : []);
  const isWrite = method === 'POST' || method === 'PUT' || method === 'PATCH';
  return byStatus([
    ...everywhere,
    ...own,
    ...(permission !== 'any key' || kinds ? (['forbidden'] as const) : []),
    ...has(params, 'not_found'),
    ...has(body, 'request_timeout', 'body_too_large'),
    ...(method === 'GET' ? [] : (['unsupported_media_type', 'conflict'] as const)),
    ...(isWrite ? (['body_too_large', 'request_timeout', 'insufficient_storage'] as const) : []),
  ]);
}

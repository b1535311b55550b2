/** What a route declares. Everything a request must pass before its handler runs follows from it. */
import Type, { type Static, type TSchema } from 'typebox';
import type { Caller } from '../vault/caller.ts';
import type { Decide, Reply } from '../vault/perform.ts';
import type { HolderKind, Permission } from '../vault/permissions.ts';

export interface RouteRequest<P, Q, B> {
  readonly caller: Caller;
  readonly params: P;
  readonly query: Q;
  readonly body: B;
}

export interface RouteDeclaration<P extends TSchema, Q extends TSchema, B extends TSchema> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path pattern, for example `/tokens/:id`. */
  readonly path: string;
  /** One line for people; it heads the operation in the OpenAPI document. */
  readonly summary: string;
  /** Held by the caller at least somewhere, or `any key`. What it may touch is decided by the rules. */
  readonly permission: Permission | 'any key';
  /** The kinds of keys the route is for, where that is what decides. */
  readonly kinds?: readonly HolderKind[];
  readonly params?: P;
  readonly query?: Q;
  readonly body?: B;
  /** The only media type of the body. */
  readonly mediaType?: string;
  readonly reply: { readonly status: Reply['status']; readonly body?: TSchema };
  /** Requests with the same turn wait for one another, so that they need not decide twice. */
  readonly turn?: (request: RouteRequest<Static<P>, Static<Q>, Static<B>>) => string | undefined;
  readonly handle: (request: RouteRequest<Static<P>, Static<Q>, Static<B>>) => Decide;
}

/** A declared route with its types settled; the server treats all alike. */
export type Route = Omit<RouteDeclaration<TSchema, TSchema, TSchema>, 'turn' | 'handle'> & {
  readonly turn?: (request: RouteRequest<never, never, never>) => string | undefined;
  readonly handle: (request: RouteRequest<never, never, never>) => Decide;
};

const nothing = Type.Object({});
type Nothing = typeof nothing;

/** Declares a route. A route without a permission does not compile. */
export function route<
  P extends TSchema = Nothing,
  Q extends TSchema = Nothing,
  B extends TSchema = Nothing,
>(declaration: RouteDeclaration<P, Q, B>): Route {
  return declaration;
}

/** A route for those who have no key: probes and clients that look whether somebody is there. */
export interface OpenRoute {
  readonly path: string;
  readonly summary: string;
  readonly handle: () => Promise<OpenReply>;
}

export interface OpenReply {
  readonly status: number;
  /** An object is sent as JSON, a text under its media type. */
  readonly body?: object | string;
  readonly mediaType?: string;
}

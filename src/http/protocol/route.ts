/** What the server must know of an operation: every check that a request must pass before its handler runs. */
import type { Static, TSchema } from 'typebox';
import type { VaultError } from '../../base/errors.ts';
import type { Caller } from '../../rules/caller.ts';
import type { Decide } from '../../rules/operation.ts';
import type { HolderKind, Permission } from '../../rules/permissions.ts';
import type { Reply } from '../../rules/reply.ts';
import type { FixedBody } from './fixed-body.ts';

export interface RouteRequest<P, Q, B> {
  readonly caller: Caller;
  readonly params: P;
  readonly query: Q;
  readonly body: B;
}

interface Declared<P extends TSchema, Q extends TSchema, B extends TSchema> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path pattern, for example `/tokens/:id`. */
  readonly path: string;
  /** The caller must hold it somewhere; `any key` requires none. The rules decide which resources it may touch. */
  readonly permission: Permission | 'any key';
  /** Serves as well as `permission`. */
  readonly alternative?: Permission;
  /** The kinds of keys the route is for, where that is what decides. */
  readonly kinds?: readonly HolderKind[];
  readonly params?: P;
  readonly query?: Q;
  /** Of a stream, one line of it. */
  readonly body?: B;
  /** Whether it is about one thing that has an entity tag, which `ETag` gives and `If-Match` names. */
  readonly tagged?: true;
  /** The media type of the body. */
  readonly mediaType?: string;
  /** Another one under which clients send the same. */
  readonly otherMediaType?: string;
  /** No body is read as an empty object. */
  readonly bodyMayBeEmpty?: boolean;
  /** The body of a stream is one line of it. */
  readonly reply: {
    readonly status: Reply['status'];
    readonly body?: TSchema;
    readonly mediaType?: string;
  };
}

export interface RouteDeclaration<P extends TSchema, Q extends TSchema, B extends TSchema>
  extends Declared<P, Q, B> {
  /** Requests with the same key wait for one another, so that they need not decide twice. */
  readonly serialKey?: (
    request: RouteRequest<Static<P>, Static<Q>, Static<B>>,
  ) => string | undefined;
  /** How many requests a body counts as under the rate limits of public keys; one without. */
  readonly parts?: (body: Static<B>) => number;
  readonly handle: (request: RouteRequest<Static<P>, Static<Q>, Static<B>>) => Decide;
}

/** Counts parts of a body, one after the other, as if each were a request of its own. */
export type CountParts = (parts: number) => Promise<Allowance>;

export interface Allowance {
  /** So many of them, the first ones, are allowed. */
  readonly granted: number;
  /** What becomes of the others. */
  readonly refusal: VaultError | undefined;
}

/** Newline-delimited JSON. */
export const linesMediaType = 'application/x-ndjson';

export interface StreamRequest<Q> {
  /**
   * The caller, authenticated again for each part of the work: a stream may outlive a key and its rules.
   * Throws once the caller would be refused, and once the server stops.
   */
  readonly caller: () => Promise<Caller>;
  /** How many rows the next part may have, from 1 to `rowsMax`. Asked once at the beginning of each part. */
  readonly rowsOfPart: (rowsMax: number) => number;
  /** The key that authenticated the caller, with which another thread can authenticate it again. */
  readonly key: string | undefined;
  /** Counts lines of the body against the rate limits of public keys. */
  readonly count: CountParts;
  readonly query: Q;
  /** Read only as fast as the handler consumes it. */
  readonly body: AsyncIterable<Buffer>;
}

/** Lines of a response, or the bytes that they come to. */
export type StreamPart = readonly object[] | Uint8Array;

export interface StreamDeclaration<Q extends TSchema, B extends TSchema>
  extends Declared<TSchema, Q, B> {
  readonly reply: {
    readonly status: 200;
    readonly body: TSchema;
    readonly mediaType: typeof linesMediaType;
  };
  /** Lines of the response, some at a time; the next ones are read once those have been sent. */
  readonly stream: (request: StreamRequest<Static<Q>>) => AsyncIterable<StreamPart>;
}

/** A route that takes a whole body and returns a whole body. */
export type WholeRoute = Declared<TSchema, TSchema, TSchema> & {
  readonly serialKey?: (request: RouteRequest<never, never, never>) => string | undefined;
  readonly parts?: (body: never) => number;
  readonly handle: (request: RouteRequest<never, never, never>) => Decide;
};

/** A route whose request and response are lines of JSON that pass through it and are never held as a whole. */
export type StreamRoute = Omit<StreamDeclaration<TSchema, TSchema>, 'stream'> & {
  readonly stream: (request: StreamRequest<never>) => AsyncIterable<StreamPart>;
};

/** A declared route with its types settled; the server treats all alike. */
export type Route = WholeRoute | StreamRoute;

/** A route for callers without a key, such as probes. */
export interface OpenRoute {
  readonly path: string;
  /** Its requests are counted by address: it costs more than a probe. */
  readonly isLimited?: true;
  /** Found by this spelling of its path alone, which is the one that a proxy in front refuses. */
  readonly isExact?: true;
  /** @param params of the path. @throws VaultError `not_found` where they name nothing. */
  readonly handle: (params: Readonly<Record<string, string>>) => Promise<OpenReply>;
}

export interface OpenReply {
  readonly status: number;
  /** An object is sent as JSON, a string and a fixed body under their media type. */
  readonly body?: object | string | FixedBody;
  readonly mediaType?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

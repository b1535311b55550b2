/** What an operation declares: all that the server, the document and the reference make of it. */
import Type, { type TSchema } from 'typebox';
import type { ErrorCode } from '../../base/errors.ts';
import type { Json } from '../../base/json.ts';
import type {
  OpenRoute,
  Route,
  RouteDeclaration,
  StreamDeclaration,
} from '../../http/protocol/route.ts';

/**
 * One request, as the document and the reference show it. A test sends the examples of all
 * operations to a vault, in their order. Values that the vault chose in an earlier response (ids,
 * keys, nonces) appear as examples too; the test replaces them with the real values.
 */
export interface Example {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  /** Of a stream, its lines. */
  readonly body?: Json;
  /** The response, or as much of it as is worth showing; of a stream, its lines. */
  readonly reply?: Json;
  /** When it is not the status of success. */
  readonly status?: number;
}

/** The documentation of an operation. */
interface OperationTexts {
  /** A unique name, from which clients are generated. */
  readonly id: string;
  /** One line, which heads the operation. */
  readonly summary: string;
  /** Details that the summary omits. */
  readonly description?: string;
  /** What only this operation is refused with. */
  readonly problems?: readonly ErrorCode[];
  readonly example: Example;
}

/** A declared operation with its types settled. */
export type Operation = Route & OperationTexts;

const nothing = Type.Object({});
type Nothing = typeof nothing;

/** Declares an operation. Without a permission, an id, a summary or an example it does not compile. */
export function operation<
  P extends TSchema = Nothing,
  Q extends TSchema = Nothing,
  B extends TSchema = Nothing,
>(declaration: RouteDeclaration<P, Q, B> & OperationTexts): Operation {
  return declaration;
}

/** Declares an operation whose request and response are lines; what does not compile is the same. */
export function streamOperation<Q extends TSchema = Nothing, B extends TSchema = Nothing>(
  declaration: StreamDeclaration<Q, B> & OperationTexts,
): Operation {
  return declaration;
}

/** An operation that needs no key. */
export interface OpenOperation extends OpenRoute {
  readonly id: string;
  readonly summary: string;
  /** What each parameter of the path is. */
  readonly params?: Readonly<Record<string, string>>;
  /** By status; of a response without a body `undefined`. */
  readonly replies: Readonly<Record<number, ReplyContent | undefined>>;
  /** Besides those of every request without a key. */
  readonly problems?: readonly ErrorCode[];
}

interface ReplyContent {
  readonly mediaType: string;
  readonly schema: object;
}

/** What a file of this folder declares: one kind of thing, and what can be done with it. */
export interface Resource<Tools> {
  /** The name of its section in the reference. */
  readonly tag: string;
  readonly description: string;
  /** In the order of the reference, in which their examples work as well. */
  readonly operations: (tools: Tools) => readonly Operation[];
}

/** A resource in one vault. */
export interface Section extends Pick<Resource<never>, 'tag' | 'description'> {
  readonly operations: readonly Operation[];
}

/** An id of the vault's making; examples that share it are about the same thing. */
export const idOf = (digit: number): string =>
  `${digit.toString(16)}f3a1c2e-8b4d-4c6a-9e2f-0d1b2c3a4e5f`;

/** What is said about an operation besides its route: its name, what else may refuse it, an example. */
import type { ErrorCode } from '../../../lib/errors.ts';
import type { Json, JsonObject } from '../../../lib/json.ts';

/**
 * One request, as the description and the reference show it. A test sends the examples of all
 * operations to a vault, in the order of their rows. What the vault chose itself in an earlier
 * response (ids, keys, nonces) stands there as an example too, and takes its real value then.
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

export interface OperationRow {
  /** A unique name, from which clients are generated. */
  readonly id: string;
  /** What its summary leaves open. */
  readonly description?: string;
  /** What only this operation is refused with. */
  readonly problems?: readonly ErrorCode[];
  readonly example: Example;
}

/** Operations of one section of the reference by method and path, in the order of their example. */
export interface Section {
  readonly tag: string;
  readonly description: string;
  readonly operations: Readonly<Record<string, OperationRow>>;
}

export const cardExample: JsonObject = {
  number: '4242424242424242',
  expiration_month: 12,
  expiration_year: 2030,
  cvc: '123',
};

/** An id of the vault's making; examples that share it are about the same thing. */
export const idOf = (digit: number): string =>
  `${digit.toString(16)}f3a1c2e-8b4d-4c6a-9e2f-0d1b2c3a4e5f`;

/** The one value of the language that is not JSON: the result of `hmac`. */
import { ExpressionError } from './error.ts';

/**
 * Octets that a later filter encodes as a string. Any other use would depend on JavaScript's implicit
 * conversions, so each of them throws.
 */
export class Bytes {
  readonly #octets: Uint8Array;

  constructor(octets: Uint8Array) {
    this.#octets = octets;
  }

  reveal(): Uint8Array {
    return this.#octets;
  }

  toString(): never {
    throw new ExpressionError('must end in to_base64 or to_base16, because its value is bytes');
  }

  toJSON(): never {
    return this.toString();
  }
}

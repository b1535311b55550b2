/** The one value of the language that is not JSON: what `hmac` gives. */
import { ExpressionError } from './error.ts';

/**
 * Octets on their way to a filter that writes them as text. Any other use would be an accident of
 * JavaScript's conversions, so each of them fails.
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

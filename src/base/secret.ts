/** A plaintext that refuses to be printed or serialized. */
import { inspect } from 'node:util';

const redacted = '[secret]';

/**
 * Holds a value that must not reach a log line, an error text, or a response by accident. Only {@link reveal} returns
 * it, so a search for that name finds every place that handles plaintext.
 */
export class Secret<T> {
  readonly #value: T;

  constructor(value: T) {
    this.#value = value;
  }

  reveal(): T {
    return this.#value;
  }

  toString(): string {
    return redacted;
  }

  toJSON(): string {
    return redacted;
  }

  [inspect.custom](): string {
    return redacted;
  }
}

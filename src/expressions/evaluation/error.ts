/** The error of an expression that cannot be evaluated with its data. */

/**
 * An expression that compiled could not be evaluated with this data: a filter refused its input, or
 * a limit was reached. The message names filters, arguments, and limits, and never contains data. It has
 * no cause, because the engine's own messages quote values. The calling code either responds with 400
 * or omits the value.
 */
export class ExpressionError extends Error {
  readonly public: string;
  /** Where the expression is in the caller's JSON, as far as that is known. */
  readonly path: string | undefined;

  constructor(message: string, path?: string) {
    super(message);
    this.name = 'ExpressionError';
    this.public = message;
    this.path = path;
  }
}

/** The error of an expression that names what the request does not have, whatever the data is. */
export class UnknownNameError extends ExpressionError {}

/**
 * What code inside the engine has of the world outside. Every other file of this folder is a function
 * that runs inside the engine, from its source text: it can use its parameters and what it declares.
 */

export interface Host {
  /** @throws Error for what the host refuses. */
  ask(operation: string, text: string): string;
  /** The same with JSON. */
  askJson(operation: string, input: unknown): unknown;
  /** Asks the vault; the promise settles with its reply. */
  request(operation: string, input: unknown): Promise<unknown>;
  /** An error with a name, and with what is to be read from it. */
  error(name: string, message: string, more?: object): Error;
}

/** Answers begin with one of these. */
export type HostResponse = '+' | '-';

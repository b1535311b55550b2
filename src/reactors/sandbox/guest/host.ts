/**
 * The host interface for code inside the engine. Every other file of this folder is a function that runs inside the
 * engine, from its source code: it can use only its parameters and its own declarations.
 */

export interface Host {
  /** @throws Error for what the host refuses. */
  ask(operation: string, text: string): string;
  /** The same with JSON. */
  askJson(operation: string, input: unknown): unknown;
  /** Sends a request to the vault; the promise settles with its reply. */
  request(operation: string, input: unknown): Promise<unknown>;
  /** An error with a name, and with what is to be read from it. */
  error(name: string, message: string, more?: object): Error;
}

/** Responses begin with one of these. */
export type HostResponse = '+' | '-';

/** What the child is sent and sends, as JSON in frames. Only the child believes what it reads. */
import type { CodeContract } from './sandbox.ts';

/** Of `frameKinds.call`. */
export interface ChildCall {
  readonly contract: CodeContract;
  readonly bt: boolean;
  readonly code: string;
  readonly input: object;
  /** Only evaluates the code, and says what is wrong with it. */
  readonly isCheck: boolean;
  /** After it the child stops by itself where it can, in case that nobody is there to kill it. */
  readonly timeoutMs: number;
}

/** Of `frameKinds.result`, besides what the guest gives: `{ value }` or `{ error }`. */
export interface ChildResult {
  readonly ended: 'memory' | 'crashed' | 'result too large' | 'result not JSON' | 'never settles';
}

/** A call as the engine gets it. */
export interface GuestCall extends Omit<ChildCall, 'timeoutMs'> {
  readonly moduleNames: readonly string[];
}

/** Of `frameKinds.reply`. */
export interface GuestReply {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: { readonly name: string; readonly message: string; readonly more?: object };
}

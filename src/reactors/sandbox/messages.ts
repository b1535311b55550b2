/** The messages to and from the child, as JSON in frames. The parent does not trust the child's messages. */
import type { CodeContract } from './sandbox.ts';

/** Of `frameKinds.call`. */
export interface ChildCall {
  readonly contract: CodeContract;
  readonly bt: boolean;
  readonly code: string;
  readonly input: object;
  /** Whether the child only evaluates the code, and reports its problems. */
  readonly isCheck: boolean;
  /** After this time the child tries to stop itself, in case the parent was killed. */
  readonly timeoutMs: number;
}

/** For `frameKinds.result`, in addition to the guest's `{ value }` or `{ error }`. */
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

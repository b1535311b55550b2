/** The input and the outcome of a decision about a proxy call. */
import type { Readable } from 'node:stream';
import type { VaultError } from '../../base/errors.ts';
import type { ApprovalId } from '../../base/ids.ts';
import type { Evaluation } from '../../expressions/evaluation/evaluation.ts';
import type { Reference } from '../../expressions/reading.ts';
import type { TextForm } from '../../expressions/request-parts/forms.ts';
import type { RequestScope } from '../../expressions/request-parts/scope.ts';
import type { ForwardResponse } from '../../outbound/response.ts';
import type { Caller } from '../../rules/caller.ts';
import type { CalledProxy } from './called-proxy.ts';
import type { CallPath } from './destination.ts';

export interface ProxyCall extends CallPath {
  readonly caller: Caller;
  readonly proxy: CalledProxy;
  readonly method: string;
  /** Alternating names and values, without headers meant for the vault. */
  readonly headers: readonly string[];
  /** For the connection to the destination. */
  readonly hopHeaders: readonly string[];
  /** Encrypted data as the caller sent it, and the name of its header. */
  readonly encrypted: { readonly text: string; readonly header: string } | undefined;
  readonly body: CallBody;
  /** Called with the number of response bytes held in memory. @throws VaultError `overloaded` */
  readonly hold: (bytes: number) => void;
  /** Rejects once the key, the proxy, or the application of the call has ended. */
  readonly stands: () => Promise<unknown>;
  /** Set for the call of a program that holds placeholders in place of values. */
  readonly readPlaceholders?: (call: ProxyCall) => Promise<CallTexts | undefined>;
  /** A handshake of WebSocket. */
  readonly upgrade?: true | undefined;
  /** Set where the policy wants one. */
  readonly approval?: GivenApproval | undefined;
  /** Aborted if the caller disconnects. */
  readonly signal: AbortSignal;
}

/** What a person decided about the call, or about all calls under its policy. */
export interface GivenApproval {
  readonly id: ApprovalId;
  /** Of the policy for which it was given. */
  readonly policyDigest: string;
  /** As the log names who approved. */
  readonly by: string;
}

/** The parts of a call that are strings. */
export type Writable = Pick<ProxyCall, 'path' | 'query' | 'headers' | 'body'>;

export interface CallTexts {
  readonly references: readonly Reference[];
  /**
   * @param scope without the body. Headers, path, and query may refer to the body as it is forwarded.
   * @throws VaultError `invalid_proxy_request` naming the part, without any value.
   */
  write(scope: RequestScope, evaluation: Evaluation): Writable;
}

export interface CallBody {
  /** Complete, or as a stream; a stream contains no expressions. */
  readonly content: Uint8Array | Readable | undefined;
  /** Set for a complete body that is text. */
  readonly form: TextForm | undefined;
  /** The reason for which a stream ended early, if its sender or its contents caused it. */
  readonly failure: () => VaultError | undefined;
}

export interface ProxyResponse extends Omit<ForwardResponse, 'drop'> {
  /** Set if it differs from the response's; null if code made the response and the destination was not called. */
  readonly destinationStatus?: number | null;
}

/** A call of a proxy as it is decided about, and what comes of it. */
import type { Readable } from 'node:stream';
import type { VaultError } from '../../base/errors.ts';
import type { TextForm } from '../../expressions/request-texts/forms.ts';
import type { ForwardResponse } from '../../outbound/response.ts';
import type { Caller } from '../../rules/caller.ts';
import type { CalledProxy } from './called-proxy.ts';
import type { CallPath } from './destination.ts';

export interface ProxyCall extends CallPath {
  readonly caller: Caller;
  readonly proxy: CalledProxy;
  readonly method: string;
  /** Names and values in turn, without those that are for the vault. */
  readonly headers: readonly string[];
  /** For the connection to the destination. */
  readonly hopHeaders: readonly string[];
  /** What the caller sent encrypted, as it was sent, and the header in which it was. */
  readonly encrypted: { readonly text: string; readonly header: string } | undefined;
  readonly body: CallBody;
  /** Called with the bytes of a response that are kept. @throws VaultError `overloaded` */
  readonly hold: (bytes: number) => void;
  /** Rejects once the key, the proxy or the application has ended by which the call is made. */
  readonly stands: () => Promise<unknown>;
  /** Aborted when the caller has gone. */
  readonly signal: AbortSignal;
}

export interface CallBody {
  /** Whole, or as it arrives; a stream holds no expressions. */
  readonly content: Uint8Array | Readable | undefined;
  /** Of a whole body that is text. */
  readonly form: TextForm | undefined;
  /** Why a stream ended early, where its sender or its contents are the reason. */
  readonly failure: () => VaultError | undefined;
}

export interface ProxyResponse extends Omit<ForwardResponse, 'drop'> {
  /** Where it is not that of the answer; null where code answered and the destination was not called. */
  readonly destinationStatus?: number | null;
}

/** The bytes between a TCP connection and TLS: until the connection is secured, few of them, and step by step. */
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { OutboundError } from './error.ts';
import type { HandshakeSteps } from './handshakes.ts';

/**
 * What a host may send before the connection is secured: certificates of some kilobytes, and sometimes the names of
 * the authorities whose clients it trusts. TLS 1.3 encrypts both, so only their length is known here. OpenSSL would
 * take 100 KB of certificates.
 */
const handshakeBytesMax = 32_768;

/**
 * Node's TLS reads from a socket in native code, which leaves no place to limit or measure what it does with the
 * bytes. Through a stream of JavaScript it gets them one packet at a time.
 */
export class HandshakeGate extends Duplex {
  readonly #raw: Socket;
  readonly #steps: HandshakeSteps;
  #bytes = 0;
  #isSecured = false;
  #isRefused = false;
  #withdraw: () => void = () => undefined;

  constructor(raw: Socket, steps: HandshakeSteps) {
    super({ allowHalfOpen: false });
    this.#raw = raw;
    this.#steps = steps;
    raw.on('data', (chunk: Buffer) => this.#pass(chunk));
    raw.on('end', () => this.push(null));
    raw.on('error', (error) => this.destroy(error));
    // What was received before the end may still be unread.
    raw.on('close', () => raw.readableEnded || this.destroy());
  }

  /** From now on all bytes pass. */
  secured(): void {
    this.#isSecured = true;
    this.#steps.succeeded();
  }

  /** The host changes its keys again and again. Called inside of the work of OpenSSL, so it ends in the next turn. */
  refuseMore(): void {
    this.#isRefused = true;
    this.#raw.pause();
    setImmediate(() => this.destroy(new OutboundError('key_updates')));
  }

  #pass(chunk: Buffer): void {
    if (this.#isRefused) return;
    if (this.#isSecured) {
      if (!this.push(chunk)) this.#raw.pause();
      return;
    }
    this.#bytes += chunk.length;
    if (this.#bytes > handshakeBytesMax) {
      this.destroy(new OutboundError('tls_too_large'));
      return;
    }
    this.#raw.pause();
    this.#withdraw = this.#steps.take(() => {
      if (this.destroyed) return;
      this.push(chunk);
      this.#raw.resume();
    });
  }

  override _read(): void {
    if (this.#isSecured) this.#raw.resume();
  }

  override _write(chunk: Uint8Array, _: BufferEncoding, done: (error?: Error | null) => void) {
    this.#raw.write(chunk, done);
  }

  override _writev(
    chunks: readonly { readonly chunk: Uint8Array }[],
    done: (error?: Error | null) => void,
  ): void {
    this.#raw.cork();
    for (const [at, { chunk }] of chunks.entries()) {
      this.#raw.write(chunk, at === chunks.length - 1 ? done : undefined);
    }
    this.#raw.uncork();
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#raw.end(done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#withdraw();
    this.#raw.destroy();
    done(error);
  }
}

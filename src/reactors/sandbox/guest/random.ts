/** Random bytes and ids, as in the crypto module: the engine's own generator is not cryptographically secure. */
import type { Host } from './host.ts';
import type { BufferPart, GuestBuffer, RandomPart } from './parts.ts';

export function random(host: Host, { Buffer }: BufferPart): RandomPart {
  function randomBytes(
    size: number,
    done?: (error: null, bytes: GuestBuffer) => void,
  ): GuestBuffer | undefined {
    const bytes = Buffer.from(host.ask('random', String(size)), 'base64');
    if (done === undefined) return bytes;
    queueMicrotask(() => done(null, bytes));
    return undefined;
  }

  function randomFillSync<T extends ArrayBufferView>(target: T): T {
    const view = new Uint8Array(target.buffer, target.byteOffset, target.byteLength);
    view.set(Uint8Array.fromBase64(host.ask('random', String(view.length))));
    return target;
  }

  function randomUUID(): string {
    const bytes = Uint8Array.fromBase64(host.ask('random', '16'));
    bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
    bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
    return bytes.toHex().replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  }

  return { randomBytes, randomFillSync, randomUUID };
}

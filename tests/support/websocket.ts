/** WebSocket in tests: handshakes, and frames written and read by hand, so that they can be wrong. */
import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';

export const handshakeKey = Buffer.from('the sample nonce').toString('base64');
export const acceptOf = (key: string) =>
  hash('sha1', `${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`, 'base64');

export interface WrittenFrame {
  readonly opcode?: number;
  readonly final?: boolean;
  readonly payload?: string | Buffer;
  /** As a client does. */
  readonly masked?: boolean;
  readonly reserved?: number;
}

export function frame({
  opcode = 1,
  final = true,
  payload = '',
  masked = false,
  reserved = 0,
}: WrittenFrame): Buffer {
  const bytes = Buffer.from(payload);
  const { length } = bytes;
  const extended = length > 0xffff ? 127 : length > 125 ? 126 : length;
  const head = [(final ? 0x80 : 0) | reserved | opcode, (masked ? 0x80 : 0) | extended];
  const size = Buffer.alloc(extended === 127 ? 8 : extended === 126 ? 2 : 0);
  if (extended === 127) size.writeBigUInt64BE(BigInt(length));
  if (extended === 126) size.writeUInt16BE(length);
  const mask = Buffer.from([0x3a, 0x5c, 0x91, 0x07]);
  const sent = masked ? bytes.map((byte, at) => byte ^ (mask[at % 4] ?? 0)) : bytes;
  return Buffer.concat([Buffer.from(head), size, ...(masked ? [mask] : []), sent]);
}

export interface ReadFrame {
  readonly opcode: number;
  readonly final: boolean;
  readonly payload: Buffer;
}

/** The frames of an end, until it ends. */
export async function* framesOf(source: AsyncIterable<Buffer>): AsyncGenerator<ReadFrame> {
  let bytes = Buffer.alloc(0);
  for await (const chunk of source) {
    bytes = Buffer.concat([bytes, chunk]);
    for (;;) {
      const [first = 0, second = 0] = bytes;
      const short = second & 0x7f;
      const sizeBytes = short === 127 ? 8 : short === 126 ? 2 : 0;
      const maskBytes = second & 0x80 ? 4 : 0;
      const begin = 2 + sizeBytes + maskBytes;
      if (bytes.length < begin) break;
      const length =
        sizeBytes === 8
          ? Number(bytes.readBigUInt64BE(2))
          : sizeBytes === 2
            ? bytes.readUInt16BE(2)
            : short;
      if (bytes.length < begin + length) break;
      const mask = bytes.subarray(2 + sizeBytes, begin);
      const payload = bytes
        .subarray(begin, begin + length)
        .map((byte, at) => (maskBytes > 0 ? byte ^ (mask[at % 4] ?? 0) : byte));
      bytes = bytes.subarray(begin + length);
      yield { opcode: first & 0x0f, final: first >= 0x80, payload: Buffer.from(payload) };
    }
  }
}

/** As a server does that follows the protocol, unless given otherwise. */
export function accept(
  { headers }: Pick<IncomingMessage, 'headers'>,
  socket: Duplex,
  added: Readonly<Record<string, string>> = {},
): void {
  const sent = {
    upgrade: 'websocket',
    connection: 'Upgrade',
    'sec-websocket-accept': acceptOf(String(headers['sec-websocket-key'])),
    ...added,
  };
  const lines = Object.entries(sent).map(([name, value]) => `${name}: ${value}`);
  socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('\r\n')}\r\n\r\n`);
}

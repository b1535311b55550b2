/** One side of a TLS 1.3 connection that writes records of its own: Node offers no way to change keys. */
import { createCipheriv, createHmac } from 'node:crypto';

/** The only suite that is understood here, for both sides to agree on. */
export const suite = 'TLS_AES_128_GCM_SHA256';

const keyBytes = 16;
const ivBytes = 12;
const tagBytes = 16;
const contentTypes = { handshake: 22, data: 23 } as const;

/** HKDF-Expand-Label without a context (RFC 8446, section 7.1), for at most one block. */
function expand(secret: Buffer, label: string, length: number): Buffer {
  const name = Buffer.from(`tls13 ${label}`);
  const info = Buffer.concat([Buffer.from([0, length, name.length]), name, Buffer.from([0])]);
  const block = createHmac('sha256', secret)
    .update(info)
    .update(Buffer.from([1]))
    .digest();
  return block.subarray(0, length);
}

export interface RecordWriter {
  /** Changes the keys so many times, and asks the other side to do the same where that is wanted. */
  keyUpdates(count: number, isRequested?: boolean): Buffer;
  data(text: string): Buffer;
}

/** @param line of the key log, with the first traffic secret of a side that has sent nothing under it. */
export function recordWriter(line: Buffer): RecordWriter {
  let secret: Buffer = Buffer.from(line.toString().trim().split(' ')[2] ?? '', 'hex');
  let number = 0;

  function record(type: number, content: Buffer): Buffer {
    const nonce = Buffer.from(expand(secret, 'iv', ivBytes));
    nonce.writeUInt32BE((nonce.readUInt32BE(ivBytes - 4) ^ number) >>> 0, ivBytes - 4);
    number += 1;
    const plain = Buffer.concat([content, Buffer.from([type])]);
    const head = Buffer.from([contentTypes.data, 3, 3, 0, 0]);
    head.writeUInt16BE(plain.length + tagBytes, 3);
    const cipher = createCipheriv('aes-128-gcm', expand(secret, 'key', keyBytes), nonce);
    cipher.setAAD(head);
    return Buffer.concat([head, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
  }

  return {
    keyUpdates: (count, isRequested = false) =>
      Buffer.concat(
        Array.from({ length: count }, () => {
          const update = record(
            contentTypes.handshake,
            Buffer.from([24, 0, 0, 1, Number(isRequested)]),
          );
          secret = expand(secret, 'traffic upd', secret.length);
          number = 0;
          return update;
        }),
      ),
    data: (text) => record(contentTypes.data, Buffer.from(text)),
  };
}

/** Converts strings to bytes and back, because the engine has no text encodings. */

const encodings = new Set<string>([
  'utf8',
  'hex',
  'base64',
  'base64url',
  'latin1',
  'ascii',
  'utf16le',
]);

export function bytesOfText(text: string, encoding: string): Buffer {
  return Buffer.from(text, known(encoding));
}

export function textOfBytes(base64: string, encoding: string): string {
  return Buffer.from(base64, 'base64').toString(known(encoding));
}

/** Follows TextDecoder, including its label and options. */
export function textWithOptions(base64: string, options: string): string {
  const { encoding, fatal, ignoreBOM } = JSON.parse(options);
  const decoder = new TextDecoder(String(encoding), {
    fatal: fatal === true,
    ignoreBOM: ignoreBOM === true,
  });
  return decoder.decode(Buffer.from(base64, 'base64'));
}

function known(encoding: string): BufferEncoding {
  if (!encodings.has(encoding)) throw new TypeError('unknown encoding');
  return encoding as BufferEncoding;
}

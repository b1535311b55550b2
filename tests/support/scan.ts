/** Searches bytes for texts in every form in which a text tends to be written down. */
import { type Dirent, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Found {
  readonly text: string;
  readonly form: string;
  readonly place: string;
}

interface Needle {
  readonly text: string;
  readonly form: string;
  readonly bytes: Buffer;
}

/** Bytes by which a needle is recognised before it is compared whole. */
const keyBytes = 4;
/** A shorter needle would be found in noise. */
const needleBytesMin = 9;

/** The text as it is, as UTF-16, in hexadecimal, and in base64 wherever in a group of three it begins. */
export function formsOf(text: string): Needle[] {
  const plain = Buffer.from(text, 'utf8');
  const hex = plain.toString('hex');
  const forms: [form: string, bytes: Buffer][] = [
    ['utf-8', plain],
    ['utf-16le', Buffer.from(text, 'utf16le')],
    ['hex', Buffer.from(hex)],
    ['hex, upper case', Buffer.from(hex.toUpperCase())],
  ];
  for (const before of [0, 1, 2]) {
    const groups = Buffer.concat([Buffer.alloc(before), plain]).toString('base64');
    // The characters at both ends depend on neighbouring bytes as well.
    const bits = (before + plain.length) * 8;
    const sure = groups.slice(Math.ceil((before * 8) / 6), Math.floor(bits / 6));
    forms.push([`base64 at ${before}`, Buffer.from(sure)]);
    const url = sure.replaceAll('+', '-').replaceAll('/', '_');
    if (url !== sure) forms.push([`base64url at ${before}`, Buffer.from(url)]);
  }
  return forms.map(([form, bytes]) => {
    if (bytes.length < needleBytesMin) throw new Error(`a text is too short to be looked for`);
    return { text, form, bytes };
  });
}

/** Gives a function that tells which of the texts occur in the bytes of a place. */
export function createScanner(texts: readonly string[]): (place: string, bytes: Buffer) => Found[] {
  const starts = new Uint8Array(0x10000);
  const byKey = new Map<number, Needle[]>();
  for (const needle of texts.flatMap(formsOf)) {
    const key = needle.bytes.readUInt32LE(0);
    starts[key & 0xffff] = 1;
    byKey.set(key, [...(byKey.get(key) ?? []), needle]);
  }
  return (place, bytes) => {
    const found = new Map<Needle, Found>();
    for (let at = 0; at <= bytes.length - keyBytes; at += 1) {
      if (starts[(bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8)] === 0) continue;
      for (const needle of byKey.get(bytes.readUInt32LE(at)) ?? []) {
        const end = at + needle.bytes.length;
        if (end > bytes.length || needle.bytes.compare(bytes, at, end) !== 0) continue;
        found.set(needle, { text: needle.text, form: needle.form, place });
      }
    }
    return [...found.values()];
  };
}

/** Every file below a directory, by its path. */
export function filesBelow(directory: string): { path: string; bytes: Buffer }[] {
  const entries: Dirent[] = readdirSync(directory, { withFileTypes: true, recursive: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => ({ path, bytes: readFileSync(path) }));
}

const uuids = /[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}/gi;

/** What is left to be searched for digits: those of an id may be any, and of one in a few thousand they are. */
export function withoutUuids(text: string): string {
  return text.replaceAll(uuids, '');
}

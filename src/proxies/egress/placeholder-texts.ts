/** The parts of a request that hold placeholders: found, held to the policy, and written with values. */
import { VaultError } from '../../base/errors.ts';
import { isObject, type Json } from '../../base/json.ts';
import type { Reference } from '../../expressions/reading.ts';
import type { PlaceholderTarget } from '../../keys/placeholder.ts';
import { type EgressPolicy, placeOfPolicy } from '../../rules/egress-policies.ts';
import { requireUtf8 } from '../calls/call-texts.ts';
import { invalidCall } from '../calls/called-proxy.ts';
import type { CallTexts, ProxyCall, Writable } from '../calls/proxy-call.ts';
import { valuesOf, withoutHeaders } from '../calls/transform-response.ts';
import { stringsOfJson } from './json-strings.ts';
import { type FindPlaceholder, placeholdersIn } from './placeholder-targets.ts';

export interface PlaceholderReading {
  readonly policy: EgressPolicy;
  readonly find: FindPlaceholder;
  /** Called with each value that is written. */
  readonly onValue: (value: string) => void;
}

/** In what it is written, and what must be true of it there. */
type EncodeValue = (value: string) => string;

interface PlacedPlaceholder {
  readonly begin: number;
  readonly end: number;
  readonly target: PlaceholderTarget;
  /** Of the policy. */
  readonly place: string;
  readonly encode: EncodeValue;
}

interface PlaceholderText {
  readonly text: string;
  readonly placed: readonly PlacedPlaceholder[];
  readonly put: (writable: Writable, written: string) => Writable;
}

export interface PlaceholdersRead extends CallTexts {
  readonly found: readonly Pick<PlacedPlaceholder, 'target' | 'place'>[];
}

/**
 * `undefined` if no part of the call holds a placeholder. A body of another form than JSON or a form is not looked at:
 * a placeholder in it is sent as it is.
 * @throws VaultError `forbidden` for a placeholder where the policy has no value, or that means nothing here.
 */
export function readPlaceholders(
  call: ProxyCall,
  reading: PlaceholderReading,
): PlaceholdersRead | undefined {
  const { path, query = '', headers } = call;
  if (placeholdersIn(path).length > 0) throw misplaced('the path');
  if (placeholdersIn(query).length > 0) throw misplaced('the query');
  const texts: PlaceholderText[] = [...headersWith(headers, reading), ...bodyWith(call, reading)];
  if (texts.length === 0) return undefined;
  const references = texts.flatMap(({ placed }) => placed.map(({ target }) => referenceTo(target)));
  return {
    references,
    found: texts.flatMap(({ placed }) => placed.map(({ target, place }) => ({ target, place }))),
    write: (scope) => {
      const values = new Set<string>();
      const value = (target: PlaceholderTarget) => {
        const text = textOf(scope.valueOf(referenceTo(target)), target);
        requireShort(values.add(text));
        reading.onValue(text);
        return text;
      };
      const written = texts.reduce<Writable>((all, one) => one.put(all, write(one, value)), call);
      return { ...written, headers: readable(written.headers) };
    },
  };
}

/** What is taken out of a response must be in it as it is, and whole: in UTF-16, no value would be found. */
function readable(headers: readonly string[]): readonly string[] {
  const unread = ['accept-encoding', 'accept-charset', 'range', 'if-range'];
  const whole = withoutHeaders(headers, unread).map((value, at, all) =>
    at % 2 === 1 && all[at - 1]?.toLowerCase() === 'accept' ? withoutCharsets(value) : value,
  );
  return [...whole, 'Accept-Encoding', 'identity'];
}

function withoutCharsets(accepted: string): string {
  return accepted.replace(/;\s*charset\s*=\s*(?:"(?:[^"\\]|\\.)*"?|[^;,]*)/gi, '');
}

/** The request as its program wrote it, as bytes: what is in there, the program knows. */
export function textsOf({ path, query = '', headers, body }: ProxyCall): string {
  const { content } = body;
  const bytes = content instanceof Uint8Array ? content : new Uint8Array();
  return [path, query, ...headers, Buffer.from(bytes).toString('latin1')].join('\n');
}

/** All in which {@link readPlaceholders} finds placeholders. A body without their digits is not read as text. */
export function textsWithNumbers({ headers, body }: ProxyCall): readonly string[] {
  const { content } = body;
  const texts = headers.flatMap((value, at) => (at % 2 === 0 ? [] : [value, basicIn(value).text]));
  if (
    !(content instanceof Uint8Array) ||
    !Buffer.from(content.buffer, content.byteOffset, content.byteLength).includes('9999')
  )
    return texts;
  return [...texts, Buffer.from(content).toString('utf8')];
}

const placeholdersMax = 100;
/** So that looking for them in the response costs little. */
const valuesBytesMax = 16_384;

function requireShort(values: Iterable<string>): void {
  let bytes = 0;
  for (const value of values) bytes += Buffer.byteLength(value);
  if (bytes <= valuesBytesMax) return;
  const message = `has placeholders whose values have more than ${valuesBytesMax} bytes together`;
  throw invalidCall('the request', message);
}

function referenceTo({ tokenId: id }: PlaceholderTarget): Reference {
  return { kind: 'data', id };
}

function write(
  { text, placed }: PlaceholderText,
  valueFor: (target: PlaceholderTarget) => string,
): string {
  let written = '';
  let kept = 0;
  for (const { begin, end, target, encode } of placed) {
    written += text.slice(kept, begin) + encode(valueFor(target));
    kept = end;
  }
  return written + text.slice(kept);
}

/** The same message for all values that do not fit, so that it says nothing of them. */
function textOf(data: Json | undefined, { property }: PlaceholderTarget): string {
  const value = property === undefined || !isObject(data) ? data : data[property];
  if (typeof value === 'string' || typeof value === 'number') return String(value);
  throw invalidCall('the request', 'has a placeholder whose value is not a string or a number');
}

interface TextPlace {
  readonly place: string;
  readonly offset: number;
  readonly encode: EncodeValue;
}

function placedIn(
  text: string,
  { policy, find }: PlaceholderReading,
  { place, offset, encode }: TextPlace,
): readonly PlacedPlaceholder[] {
  return placeholdersIn(text).map(({ index, text: placeholder }) => {
    const target = find(placeholder);
    if (target === undefined) throw unknown(place);
    const placeThere = placeOfPolicy(policy, place);
    if (placeThere === undefined) throw misplaced(place);
    // A host that cuts what it gives back would show a value by parts, from behind as much text as the program likes.
    if (!place.startsWith('header:') && placeholder !== text) throw mixed(place);
    const begin = offset + index;
    return { begin, end: begin + placeholder.length, target, place: placeThere, encode };
  });
}

function headersWith(headers: readonly string[], reading: PlaceholderReading): PlaceholderText[] {
  return headers.flatMap((value, at): PlaceholderText[] => {
    if (at % 2 === 0) return [];
    const place = `header:${headers[at - 1]?.toLowerCase()}`;
    const put = (writable: Writable, written: string) => ({
      ...writable,
      headers: writable.headers.with(at, written),
    });
    const placed = placedIn(value, reading, { place, offset: 0, encode: forHeader });
    if (placed.length > 0) return [{ text: value, placed, put }];
    return basicWith(value, { place, reading, put });
  });
}

/** RFC 7617: programs put user names and passwords there, encoded, whether they are placeholders or not. */
function basicWith(
  value: string,
  {
    place,
    reading,
    put,
  }: { readonly place: string; readonly reading: PlaceholderReading } & Pick<
    PlaceholderText,
    'put'
  >,
): PlaceholderText[] {
  const { scheme, text } = basicIn(value);
  const placed = placedIn(text, reading, { place, offset: 0, encode: forHeader });
  if (placed.length === 0) return [];
  const encodeAll = (written: string) => scheme + Buffer.from(written).toString('base64');
  return [{ text, placed, put: (writable, written) => put(writable, encodeAll(written)) }];
}

function basicIn(value: string): { readonly scheme: string; readonly text: string } {
  const [, scheme = '', encoded = ''] = /^(basic +)([A-Za-z0-9+/=]+)$/i.exec(value) ?? [];
  return { scheme, text: Buffer.from(encoded, 'base64').toString('utf8') };
}

function forHeader(value: string): string {
  if (/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) return value;
  throw invalidCall('a header', 'has a placeholder whose value cannot stand there');
}

const forJson: EncodeValue = (value) => JSON.stringify(value).slice(1, -1);
const forForm: EncodeValue = (value) => encodeURIComponent(value.toWellFormed());

function bodyWith(call: ProxyCall, reading: PlaceholderReading): PlaceholderText[] {
  const { content, form } = call.body;
  if (!(content instanceof Uint8Array) || (form !== 'json' && form !== 'form')) return [];
  const text = Buffer.from(content).toString('utf8');
  const all = placeholdersIn(text);
  if (all.length === 0) return [];
  if (all.length > placeholdersMax) {
    throw invalidCall('the request', `has more than ${placeholdersMax} placeholders`);
  }
  requireUtf8(call);
  if (valuesOf(call.headers, 'content-type').length > 1) {
    throw invalidCall('the request', 'has placeholders in a body and more than one Content-Type');
  }
  const placed = form === 'json' ? placedInJson(text, all, reading) : placedInForm(text, reading);
  // One is elsewhere, such as in a name.
  if (placed.length < all.length) throw misplaced('the body');
  const put = (writable: Writable, written: string) => ({
    ...writable,
    body: { ...writable.body, content: Buffer.from(written) },
  });
  return [{ text, placed, put }];
}

/** Of what is not JSON, the destination may read other places than the vault. */
function placedInJson(
  text: string,
  found: readonly { readonly index: number }[],
  reading: PlaceholderReading,
): readonly PlacedPlaceholder[] {
  if (!isJson(text)) return [];
  // Both are in the order of the text.
  let next = 0;
  const isWanted = (begin: number, end: number) => {
    while ((found[next]?.index ?? end) < begin) next += 1;
    return (found[next]?.index ?? end) < end;
  };
  return stringsOfJson(text, isWanted).flatMap(({ begin, end, path }) => {
    // As a place, it would be that of a member within another one.
    if (path.some((name) => name.includes('.'))) throw misplaced('json:');
    const place = { place: `json:${path.join('.')}`, offset: begin, encode: forJson };
    return placedIn(text.slice(begin, end), reading, place);
  });
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function placedInForm(text: string, reading: PlaceholderReading): readonly PlacedPlaceholder[] {
  const placed: PlacedPlaceholder[] = [];
  let offset = 0;
  for (const pair of text.split('&')) {
    const at = pair.indexOf('=');
    if (at >= 0) {
      const value = pair.slice(at + 1);
      // Some destinations read another pair behind it.
      if (pair.includes(';') && placeholdersIn(value).length > 0) throw misplaced('form:');
      const place = `form:${nameOf(pair.slice(0, at))}`;
      placed.push(...placedIn(value, reading, { place, offset: offset + at + 1, encode: forForm }));
    }
    offset += pair.length + 1;
  }
  return placed;
}

function nameOf(encoded: string): string {
  try {
    return decodeURIComponent(encoded.replaceAll('+', ' '));
  } catch {
    return encoded;
  }
}

function misplaced(place: string): VaultError {
  const where = /^(?:header|json|form):/.test(place) ? place.replace(/:.*/s, '') : place;
  return new VaultError('forbidden', {
    public: `The egress policy has no value where a placeholder stands in the request: ${where}.`,
  });
}

function mixed(place: string): VaultError {
  const where = place.replace(/:.*/s, '');
  return new VaultError('forbidden', {
    public: `A placeholder in the request (${where}) has other text beside it.`,
  });
}

function unknown(place: string): VaultError {
  const where = place.replace(/:.*/s, '');
  return new VaultError('forbidden', {
    public: `A placeholder in the request (${where}) is unknown, is not this application's, or has ended.`,
  });
}

/** What a client says of itself and chooses freely, as far as the log repeats it. */
import { luhnValid } from '../base/checks.ts';

const traceIdForm = /^[\x21-\x7e]{1,100}$/;
/** As many digits as a card number has, alone or in groups. */
const cardLike = /(?<!\d)\d(?:[ -]?\d){12,18}(?!\d)/g;

/** False for a string that holds what may be a card number: entries of the log never hold a value. */
export function mayBeTraceId(sent: string): boolean {
  if (!traceIdForm.test(sent)) return false;
  return !sent.match(cardLike)?.some((digits) => luhnValid(digits.replaceAll('-', '')));
}

/** A name of letters, and a version that is too short for a number that must not be logged. */
const product =
  /(?<![^\s(;])([A-Za-z][A-Za-z._-]{0,23})\/(\d{1,4}(?:\.\d{1,4}){0,2})(?![^\s;),.])/g;
const productsMax = 3;
/** A longer header is read up to here. */
const userAgentReadMax = 512;

const productsByHeader = new Map<string, string | undefined>();
const headersRemembered = 500;

/**
 * The first products of a `User-Agent` header, such as `curl/8.5.0`, without comments; `undefined` where it names none.
 * Whatever else a client writes there is not repeated.
 */
export function productsOf(header: string | undefined): string | undefined {
  if (header === undefined) return undefined;
  if (productsByHeader.has(header)) return productsByHeader.get(header);
  const found = header.slice(0, userAgentReadMax).matchAll(product);
  const products = [...found.take(productsMax)].map(([, name, version]) => `${name}/${version}`);
  const text = products.length === 0 ? undefined : products.join(' ');
  if (productsByHeader.size >= headersRemembered) productsByHeader.clear();
  if (header.length <= userAgentReadMax) productsByHeader.set(header, text);
  return text;
}

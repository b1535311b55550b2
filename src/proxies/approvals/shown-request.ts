/** A request as the person sees it who approves it: without any value, and without text that only its program chose. */
import { sha256 } from '../../keys/digest.ts';
import { destinationOf } from '../calls/destination.ts';
import type { ProxyCall } from '../calls/proxy-call.ts';

/** A placeholder in the request: for which value, and which place of the policy has it. */
export interface NamedPlaceholder {
  readonly id: string;
  readonly property?: string;
  readonly place: string;
}

export interface ShownRequest {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly tokens: readonly NamedPlaceholder[];
  readonly content?: { readonly type?: string; readonly bytes: number };
}

type ShownCall = Pick<ProxyCall, 'proxy' | 'method' | 'path' | 'query' | 'headers' | 'body'>;

const pathLengthMax = 200;
/** As of cards and accounts, also with separators. */
const longNumber = /\d(?:(?:[-._+]|%20)?\d){8,}/g;
const mediaTypeForm = /^[a-z0-9.+-]{1,40}\/[a-z0-9.+-]{1,60}(?=\s*(?:;|$))/i;

/** Paths are printable ASCII. A program may have written a number into one, also with encoded digits. */
function shownPath(path: string): string {
  const plain = path.replaceAll(/%(?:25)*3([0-9])/g, '$1').replaceAll(longNumber, '********');
  return plain.length > pathLengthMax ? `${plain.slice(0, pathLengthMax)}…` : plain;
}

export function shownRequest(call: ShownCall, tokens: readonly NamedPlaceholder[]): ShownRequest {
  const { content } = call.body;
  const [type] = mediaTypeForm.exec(headerOf(call.headers, 'content-type') ?? '') ?? [];
  const distinct = new Map(tokens.map((one) => [JSON.stringify(one), one]));
  return {
    method: call.method,
    path: shownPath(call.path || '/'),
    tokens: [...distinct.values()],
    ...(content instanceof Uint8Array && {
      content: { ...(type !== undefined && { type }), bytes: content.length },
    }),
  };
}

/** Of all that is sent, with placeholders in place of values. */
export function digestOfRequest(call: ShownCall): string {
  const { content } = call.body;
  const bytes = content instanceof Uint8Array ? content : new Uint8Array();
  const { url, target } = destinationOf(call.proxy, call);
  const parts = [
    call.method,
    url.origin,
    target,
    call.headers,
    sha256(bytes).toString('base64url'),
  ];
  return sha256(JSON.stringify(parts)).toString('base64url');
}

function headerOf(headers: readonly string[], name: string): string | undefined {
  const at = headers.findIndex((one, place) => place % 2 === 0 && one.toLowerCase() === name);
  return at < 0 ? undefined : headers[at + 1];
}

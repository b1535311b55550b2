/** Which headers of a request are sent on: all but those that are for the vault. */
import { invalidCall } from '../../proxies/calls/called-proxy.ts';
import { withoutConsoleCookie } from '../console/credential.ts';
import type { ServiceHeaders } from '../protocol/headers.ts';
import type { RequestContext } from '../protocol/request-context.ts';

export interface CallHeaders {
  /** Names and values in turn, as they were sent. */
  readonly headers: readonly string[];
  /** For the connection to the destination. */
  readonly hopHeaders: readonly string[];
  /** The value that a browser encrypted for the vault, and the header that holds it. */
  readonly encrypted: { readonly text: string; readonly header: string } | undefined;
}

export function headersOfCall(
  { request, headers }: RequestContext,
  own: ServiceHeaders,
): CallHeaders {
  const { rawHeaders } = request;
  const sent: string[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    const lower = name.toLowerCase();
    if (own.isOwn(lower)) continue;
    const value = rawHeaders[at + 1] ?? '';
    const passed = lower === 'cookie' ? withoutConsoleCookie(value) : value;
    if (lower !== 'cookie' || passed !== '') sent.push(name, passed);
  }
  const text = own.read(headers, 'encrypted');
  return {
    headers: sent,
    hopHeaders: hopHeadersOf(headers, { request, own }),
    encrypted:
      text === undefined ? undefined : { text, header: own.nameAsSent(request, 'encrypted') },
  };
}

/** Any other value changes how a connection is used, which a caller may not decide. */
const forms = {
  'proxy-connection': ['Connection', /^(?:close|keep-alive)$/i, 'must be close or keep-alive'],
  'proxy-keep-alive': [
    'Keep-Alive',
    /^[a-z]+=[0-9]{1,9}(?: *, *[a-z]+=[0-9]{1,9}){0,3}$/i,
    'must be parameters such as timeout=5, max=100',
  ],
} as const;

function hopHeadersOf(
  headers: RequestContext['headers'],
  { request, own }: Pick<RequestContext, 'request'> & { readonly own: ServiceHeaders },
): string[] {
  return (['proxy-connection', 'proxy-keep-alive'] as const).flatMap((control) => {
    const value = own.read(headers, control);
    const [name, form, message] = forms[control];
    if (value === undefined) return [];
    if (!form.test(value)) throw invalidCall(own.nameAsSent(request, control), message);
    return [name, value];
  });
}

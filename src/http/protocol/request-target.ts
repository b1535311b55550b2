/** The host and the path of a request. Where HTTP/1.1 lets a client give both twice, the two must be equal. */
import type { IncomingMessage } from 'node:http';
import { VaultError } from '../../base/errors.ts';

/** RFC 9110, section 7.2: a name or an address, with a port or without. No name holds another character. */
const hostForm = /^(?:[a-z0-9._-]*|\[[0-9a-f:.]+\])(?::[0-9]{0,5})?$/i;

/** RFC 9112, section 3.2.2. */
const absoluteForm = /^(https?):\/\/([^/?#]*)(.*)$/is;

const defaultPorts: Readonly<Record<string, string>> = { http: '80', https: '443' };

/**
 * Reduces an absolute target to its path, so that the code behind this knows only one form.
 * @throws VaultError `malformed_request` for several `Host` headers, none, an invalid one, or an absolute target with
 * another host: given two hosts, each proxy on the way could choose a different one.
 */
export function settleTarget(request: IncomingMessage): void {
  const { rawHeaders, headers, url = '', httpVersion } = request;
  const hosts = hostsIn(rawHeaders);
  if (hosts > 1 || (hosts === 0 && httpVersion !== '1.0'))
    throw refused('must have one Host header');
  const { host = '' } = headers;
  if (!hostForm.test(host)) throw refused('must have a Host header that is a host');
  if (url.startsWith('/') || url === '*') return;
  const [, scheme = '', authority = '', path = ''] = absoluteForm.exec(url) ?? [];
  if (scheme === '') throw refused('must have a path, or a URL of this vault');
  if (authority === '' || compared(authority, scheme) !== compared(host, scheme)) {
    throw refused('must have one host in its URL and in its Host header');
  }
  request.url = path.startsWith('/') ? path : `/${path}`;
}

const lengthOfHost = 'host'.length;

function hostsIn(rawHeaders: readonly string[]): number {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    if (name.length === lengthOfHost && name.toLowerCase() === 'host') count += 1;
  }
  return count;
}

/** The port of the scheme may be left out. */
function compared(host: string, scheme: string): string {
  const [name = '', port = ''] = host.toLowerCase().split(/:(?=[0-9]*$)/);
  return port === '' || port === defaultPorts[scheme.toLowerCase()] ? name : `${name}:${port}`;
}

function refused(rule: string): VaultError {
  return new VaultError('malformed_request', { public: `The request ${rule}.` });
}

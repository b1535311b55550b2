/** Where a program wants to go: the authority of a CONNECT, or the host of a request without TLS. */
import type { IncomingMessage } from 'node:http';
import { VaultError } from '../../base/errors.ts';
import type { EgressTarget } from '../../rules/egress-policies.ts';
import { comparedName } from '../../rules/host-names.ts';

const authorityForm = /^([a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?\.?)(?::([0-9]{1,5}))?$/i;

/** @throws VaultError `malformed_request`, also for an address. */
export function targetOf(authority: string, isPlain: boolean): EgressTarget {
  const [, host = '', port = isPlain ? '80' : ''] = authorityForm.exec(authority) ?? [];
  if (host === '' || port === '' || Number(port) < 1 || Number(port) > 65_535) {
    throw new VaultError('malformed_request', {
      public: 'Name a host by its DNS name, and its port.',
    });
  }
  return { host: comparedName(host), port: Number(port), isPlain };
}

/**
 * A request in a connection names the host of the connection. Any other name would reach another site of the same
 * servers (domain fronting).
 * @throws VaultError `malformed_request`
 */
export function requireSameHost({ headers }: IncomingMessage, { host, port }: EgressTarget): void {
  const [, named = '', given = '443'] = authorityForm.exec(headers.host ?? '') ?? [];
  if (comparedName(named) === host && Number(given) === port) return;
  throw new VaultError('malformed_request', {
    public: 'The Host of the request is not the host of its connection.',
  });
}

/** The key in `Proxy-Authorization: Basic`, whose user name is free. */
export function proxyKeyOf({ headers }: IncomingMessage): string | undefined {
  const [, encoded = ''] =
    /^basic +([A-Za-z0-9+/]+=*)$/i.exec(headers['proxy-authorization'] ?? '') ?? [];
  if (encoded === '') return undefined;
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  const at = text.indexOf(':');
  return at < 0 ? undefined : text.slice(at + 1);
}

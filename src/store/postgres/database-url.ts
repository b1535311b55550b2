/** The address of PostgreSQL: what crosses a network to it must be encrypted for a server that proves itself. */
import { invalid } from '../../base/errors.ts';
import { hostsOf } from './hosts.ts';

/** Modes that verify the certificate only in part or not at all. */
const unverified: ReadonlySet<string> = new Set(['disable', 'no-verify']);

const loopback = /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/i;

/**
 * The URL with `sslmode=verify-full`, which the driver then keeps to, unless every server is on this machine.
 * @param hostDefault where the driver looks when the URL names no host.
 * @throws VaultError `validation_failed` when the URL asks for less, or names hosts that cannot be used.
 */
export function verifiedUrl(text: string, hostDefault = 'localhost'): string {
  if (hostsOf(text).every(({ host }) => isLocal(host || hostDefault))) return text;
  const parameters = parametersOf(text);
  const requested = parameters.getAll('sslmode').at(-1);
  if (requested !== undefined && unverified.has(requested)) {
    throw invalid(
      'url',
      `must not have sslmode=${requested} for a host beyond loopback, because everything that is stored would ` +
        'be sent to an unverified server. Leave it out, and name the certificate authority with sslrootcert if it ' +
        'is your own, or set STRONGROOM_DATABASE_TLS=off if something else protects the connection',
    );
  }
  // The driver treats weaker modes as this one, or as libpq does if a parameter requests that.
  for (const name of ['ssl', 'sslmode', 'uselibpqcompat']) parameters.delete(name);
  if (parameters.get('sslrootcert') === 'system') parameters.delete('sslrootcert');
  parameters.set('sslmode', 'verify-full');
  return `${text.replace(/\?.*$/s, '')}?${parameters}`;
}

/** The file that holds the authority of the server's certificate, if the URL names one. */
export function authorityFileOf(text: string): string | undefined {
  return parametersOf(text).getAll('sslrootcert').at(-1);
}

/** If a parameter occurs several times, the last one counts, as in the driver. */
function parametersOf(text: string): URLSearchParams {
  return new URLSearchParams(/\?([^#]*)/.exec(text)?.[1] ?? '');
}

/** A path is a socket of this machine. */
function isLocal(host: string): boolean {
  return host.startsWith('/') || loopback.test(host);
}

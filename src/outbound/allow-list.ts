/** The operator's own hosts, which bypass the guard: exactly these names, at exactly these ports. */
import { invalid } from '../base/errors.ts';

/** Hosts such as `bank.internal:8443` or `[fd00::1]:80`, in the form of {@link hostAndPort}. */
export type AllowList = ReadonlySet<string>;

const entryForm = /^[^\s/?#@]+:[0-9]+$/;

/** The host of a URL with its explicit or default port. */
export function hostAndPort({ hostname, port, protocol }: URL): string {
  return `${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`;
}

/** For calls of one service of the operator's own, which no tenant may call for that. */
export function onlyHost(url: URL | string): AllowList {
  return new Set([hostAndPort(new URL(url))]);
}

/** @throws VaultError `validation_failed` if an entry is not a host with a port. */
export function parseAllowList(text: string): AllowList {
  const entries = text.split(',').map((entry) => {
    const url = entryForm.test(entry.trim()) ? URL.parse(`http://${entry.trim()}`) : null;
    if (url === null)
      throw invalid('allow', 'must be a list such as bank.internal:8443,10.0.0.7:80');
    return hostAndPort(url);
  });
  return new Set(entries);
}

/** Where the log is exported to while it is written: what `STRONGROOM_LOG_EXPORT` says. */
import { invalid } from '../../base/errors.ts';

export type LogExportPlace =
  | { readonly kind: 'stdout' }
  | { readonly kind: 'file'; readonly file: string }
  /** Pushed there, at least once. Without a user name, a query of secrets, or a fragment. */
  | { readonly kind: 'https' | 'syslog'; readonly url: string };

/** As in RFC 5425. */
const syslogPort = '6514';

/** @throws VaultError `validation_failed` for an address that the log cannot be pushed to. */
export function parseLogExport(text: string): LogExportPlace {
  if (text === 'stdout') return { kind: 'stdout' };
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return { kind: 'file', file: text };
  const url = URL.parse(text);
  const isPlain = url !== null && url.username === '' && url.password === '' && url.hash === '';
  if (isPlain && url.protocol === 'https:') return { kind: 'https', url: url.href };
  if (isPlain && url.protocol === 'syslog+tls:' && isHostAlone(url)) {
    return { kind: 'syslog', url: `syslog+tls://${url.hostname}:${url.port || syslogPort}` };
  }
  throw invalid(
    'log_export',
    'must be stdout, a file, an https URL without a user name, or syslog+tls://host:port',
  );
}

function isHostAlone({ hostname, pathname, search }: URL): boolean {
  return hostname !== '' && (pathname === '' || pathname === '/') && search === '';
}

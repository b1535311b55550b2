/** Reloads the settings that {@link Reloadable} names in a running server. */

import { reasonOf } from '../base/errors.ts';
import type { PemPair } from '../keys/tls-pair.ts';
import type { Config, Reloadable } from './config/config.ts';
import { ConfigError, wrongVariable } from './config/problems.ts';
import type { Process } from './process.ts';

interface Tools extends Pick<Process, 'log' | 'showCertificate'> {
  readonly setTls: (pair: PemPair) => void | Promise<void>;
}

/** Reloads happen one after the other, so that the pair that was read last is the one in use. */
export function createReload({ tls }: Config, { log, setTls, showCertificate }: Tools) {
  let latest = Promise.resolve();

  async function reload(read: () => Reloadable): Promise<void> {
    if (tls === undefined) {
      log.info('reload: there is nothing to read again, because the vault serves no TLS');
      return;
    }
    try {
      const next = read().tls;
      if (next === undefined) return;
      requireUsable(next);
      await setTls(next);
      showCertificate(next.cert);
      log.info('reload: new connections use the certificate and the key that were read again');
    } catch (error) {
      // Problems of the configuration name variables and never hold a value.
      const problem = error instanceof ConfigError ? error.message : reasonOf(error);
      log.error(`reload: the certificate and the key in use stay. ${problem}`);
    }
  }

  return (read: () => Reloadable): Promise<void> => {
    latest = latest.then(() => reload(read));
    return latest;
  };
}

/** Checks the pair as each thread will use it: OpenSSL also refuses matching pairs, such as one with a short key. */
function requireUsable(pair: PemPair): void {
  try {
    process.getBuiltinModule('node:tls').createSecureContext(pair);
  } catch {
    throw wrongVariable('STRONGROOM_TLS_CERT', 'names a certificate that TLS cannot use');
  }
}

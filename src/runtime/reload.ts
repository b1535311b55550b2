/** Reloads the settings that {@link Reloadable} names in a running server: all of them, or none. */

import { isDeepStrictEqual } from 'node:util';
import { reasonOf } from '../base/errors.ts';
import type { PemPair } from '../keys/tls-pair.ts';
import type { Reloadable } from './config/config.ts';
import { ConfigError, wrongVariable } from './config/problems.ts';
import type { Process } from './process.ts';

export interface Reloaded {
  readonly isDone: boolean;
  /** One line for the operator, without a value. */
  readonly text: string;
}

type ApplySettings = (settings: Reloadable) => void | Promise<void>;

const names = {
  tls: 'the certificate',
  logLevel: 'the log level',
  rateLimits: 'the rate limits',
  trustedProxies: 'the trusted proxies',
  roleRules: 'the roles of people',
} as const satisfies Record<keyof Reloadable, string>;

const keys = ['tls', 'logLevel', 'rateLimits', 'trustedProxies', 'roleRules'] as const;

const settingsOf = ({ tls, logLevel, rateLimits, trustedProxies, roleRules }: Reloadable) => ({
  tls,
  logLevel,
  rateLimits,
  trustedProxies,
  roleRules,
});

/**
 * Reloads happen one after the other, so that what was read last is in use.
 * @param first what the server started with.
 */
export function createReload(
  first: Reloadable,
  {
    apply,
    listening,
  }: Pick<Process, 'apply'> & { readonly listening: { readonly apply: ApplySettings } },
) {
  let current: Reloadable = settingsOf(first);
  let latest = Promise.resolve<Reloaded>({ isDone: true, text: '' });

  async function reload(read: () => Reloadable): Promise<Reloaded> {
    try {
      const next = settingsOf(read());
      if (next.tls) requireUsable(next.tls);
      await listening.apply(next);
      await apply(next);
      const changed = keys.filter((key) => !isDeepStrictEqual(current[key], next[key]));
      current = next;
      const what = changed.map((key) => names[key]).join(', ') || 'nothing';
      return { isDone: true, text: `reload: what was read again is in use; changed: ${what}` };
    } catch (error) {
      // Problems of the configuration name variables and never hold a value.
      const problem = error instanceof ConfigError ? error.problems.join(' ') : reasonOf(error);
      return { isDone: false, text: `reload: all settings in use stay. ${problem}` };
    }
  }

  return (read: () => Reloadable): Promise<Reloaded> => {
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

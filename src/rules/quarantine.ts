/** Quarantine of rows that were altered outside the vault: each is reported, and none stops other work. */
import type { Clock } from '../base/clock.ts';
import { isIntegrityError, type VaultError } from '../base/errors.ts';
import type { Log } from '../base/telemetry/log.ts';
import type { Metrics } from '../base/telemetry/metrics.ts';
import { createRareWarning } from '../base/telemetry/rare-warning.ts';

export interface Quarantine {
  /** Returns the result of `open`; `undefined` for an altered row, which is reported. @throws any other failure. */
  read<T>(open: () => T): T | undefined;
  /** The same for a row that has to be read first. */
  fetch<T>(open: () => Promise<T>): Promise<T | undefined>;
  /** Reports a row that the vault cannot have written, although it opened. */
  report(damage: VaultError): void;
}

/** @param report raises the alert. It does not throw. */
export function createQuarantine(report: (damage: VaultError) => void): Quarantine {
  function setAside(error: unknown): undefined {
    if (!isIntegrityError(error)) throw error;
    report(error);
    return undefined;
  }

  return {
    read: (open) => {
      try {
        return open();
      } catch (error) {
        return setAside(error);
      }
    },
    fetch: async (open) => {
      try {
        return await open();
      } catch (error) {
        return setAside(error);
      }
    },
    report,
  };
}

export interface AlertTools {
  readonly metrics: Pick<Metrics, 'count'>;
  readonly log: Log;
  readonly clock: Clock;
}

/** That of a thread. Its one alert counts each row that was set aside, and warns of them once a minute. */
export function alertingQuarantine({ metrics, ...logging }: AlertTools): Quarantine {
  const warn = createRareWarning(
    'rows that were altered outside the vault are neither shown nor used; "strongroom logs verify --state" names them',
    logging,
  );
  return createQuarantine(() => {
    metrics.count('integrity_failures');
    warn(1);
  });
}

/** For commands, which end with the failure of what they cannot do without. */
export const silentQuarantine = createQuarantine(() => undefined);

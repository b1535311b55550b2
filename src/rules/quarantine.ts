/** Quarantine of rows that were altered outside the vault: each is reported, and none stops other work. */
import { isIntegrityError, type VaultError } from '../base/errors.ts';

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

/** What was altered outside the vault is set aside in one way: reported once it is met, and in nobody's way. */
import { isIntegrityError, type VaultError } from '../base/errors.ts';

export interface Quarantine {
  /** What `open` gives; `undefined` for what was altered, which is reported. @throws any other failure. */
  read<T>(open: () => T): T | undefined;
  /** The same for what is read first. */
  fetch<T>(open: () => Promise<T>): Promise<T | undefined>;
  /** Of what cannot be as the vault wrote it, although nothing failed to open. */
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

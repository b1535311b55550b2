/** Quarantine of rows that were altered outside the vault: each is reported, and none stops other work. */
import { type AlteredRow, isIntegrityError, type VaultError } from '../base/errors.ts';
import type { ExplainedName } from '../store/row-states.ts';
import type { RowFromStore } from '../store/stored-row.ts';
import type { Row } from '../store/tables.ts';
import { nameOf } from './bound-row.ts';
import { type Keys, requireProven } from './proven-row.ts';

export interface Quarantine {
  /** Returns the result of `open`; `undefined` for an altered row, which is reported. @throws any other failure. */
  read<T>(open: () => T): T | undefined;
  /** The same for a row that has to be read first. */
  fetch<T>(open: () => Promise<T>): Promise<T | undefined>;
  /** The rows that are as the vault wrote them, in their order, and the names of the others, which are reported. */
  proven<T extends ExplainedName>(
    keys: Keys,
    table: T,
    rows: readonly RowFromStore<T>[],
  ): ProvenRows<T>;
  /** Reports a row that the vault cannot have written, although it opened. */
  report(damage: VaultError): void;
}

export interface ProvenRows<T extends ExplainedName> {
  readonly rows: readonly Row<T>[];
  readonly altered: readonly AlteredRow[];
}

/** @param report raises the alert. It does not throw. */
export function createQuarantine(report: (damage: VaultError) => void): Quarantine {
  function setAside(error: unknown): undefined {
    if (!isIntegrityError(error)) throw error;
    report(error);
    return undefined;
  }

  function read<T>(open: () => T): T | undefined {
    try {
      return open();
    } catch (error) {
      return setAside(error);
    }
  }

  return {
    read,
    fetch: async (open) => {
      try {
        return await open();
      } catch (error) {
        return setAside(error);
      }
    },
    proven: <T extends ExplainedName>(keys: Keys, table: T, found: readonly RowFromStore<T>[]) => {
      const rows: Row<T>[] = [];
      const altered: AlteredRow[] = [];
      for (const one of found) {
        const row = read(() => requireProven(keys, table, one));
        if (row === undefined) altered.push(nameOf(table, one));
        else rows.push(row);
      }
      return { rows, altered };
    },
    report,
  };
}

/** A database while no server has it. */
import type { SqlValue, Table } from './tables.ts';

/** Rows, each with its values in the order of the table's columns. */
export type RowBatch = readonly (readonly SqlValue[])[];

export interface StillDatabase {
  /** All rows of a table as of one moment, in no particular order, in constant memory. */
  rows(table: Table): AsyncIterable<RowBatch> | Iterable<RowBatch>;
  release(): Promise<void>;
}

/** What an engine calls the three kinds of column, and a table. */
export interface ColumnTypes {
  readonly text: string;
  readonly integer: string;
  readonly bytes: string;
  /** A table whose content need not survive a crash. */
  readonly scratchTable: string;
}

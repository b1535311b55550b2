/** What an engine calls the types of columns, and tables of special kinds. */
export interface ColumnTypes {
  /** For what no type says: triggers are written in the language of the engine. */
  readonly engine: 'sqlite' | 'postgres';
  readonly text: string;
  readonly integer: string;
  readonly bytes: string;
  /** A signed integer of 32 bits. */
  readonly tenant: string;
  /** A column `rowid` that orders rows as they were inserted, where tables have none by themselves. */
  readonly rowid: string;
  /** The same in an index, as its last column. */
  readonly byRowid: string;
  /** After every table: that its columns hold values of their types alone. Only SQLite has to be asked. */
  readonly strict: string;
  /** A table whose content need not survive a crash. */
  readonly scratchTable: string;
  /** The same of a table whose rows are stored in its primary key. */
  readonly keptByKey: string;
  /** After a primary key: what its index holds as well, where rows are stored elsewhere. */
  readonly keyCovers: (columns: string) => string;
}

/** The place that a vault is copied to. What it knows of the copy is stored with the rows, so that a copy can go on. */
import { isObject } from '../../base/json.ts';
import type { SqlValue, Table } from '../tables.ts';
import { incomingCopy } from '../unfinished-restore.ts';
import { type CopyDatabase, type StoredValues, selectTable, writing } from './copy-database.ts';

export interface TableProgress {
  /** The key of the last row that was copied. */
  readonly after: StoredValues | undefined;
  readonly rows: number;
  readonly isDone: boolean;
}

export interface CopyState {
  /** Which copy it is: of which vault, and what of it. */
  readonly copy: string;
  /** Statements that create the indexes that are left out until all rows are there. */
  readonly indexes: readonly string[];
  readonly tables: Readonly<Partial<Record<Table, TableProgress>>>;
}

export interface CopyTarget {
  readonly database: CopyDatabase;
  readonly state: CopyState;
  /** Whether an earlier copy began here that is now continued. */
  readonly isResumed: boolean;
  /** Before rows are written. @throws RestoreError where they would take the room that servers of the target leave. */
  requireRoom(): void;
  /** In the transaction that writes the rows. */
  saveTable(table: Table, progress: TableProgress): Promise<void>;
  /** Creates the indexes that were left out. */
  createIndexes(): Promise<void>;
  /** The last step: servers may start here from now on. */
  serve(): Promise<void>;
  /** What was copied stays, for the same copy to go on. */
  release(): Promise<void>;
}

export interface TargetOptions {
  /** The name of the copy, by which it is known again when it goes on. */
  readonly copy: string;
  /** Whether to begin where there is no copy of that name. */
  readonly begin: boolean;
}

/** The statement that removes what {@link createState} made. */
export const dropState = `drop table if exists ${incomingCopy}`;

/** In the place of a tenant: the copy is of the whole vault. */
const wholeVault = '';

export async function createState(
  database: CopyDatabase,
  state: CopyState,
  tenant: string = wholeVault,
): Promise<void> {
  const { text } = database.types;
  await database.run(
    `create table if not exists ${incomingCopy} (tenant ${text} not null, name ${text} not null,
      value ${text} not null, constraint ${incomingCopy}_key primary key (tenant, name))`,
  );
  await database.rows(
    `insert into ${incomingCopy} (tenant, name, value) values (?1, 'copy', ?2), (?1, 'indexes', ?3)`,
    [tenant, state.copy, JSON.stringify(state.indexes)],
  );
}

/** The same of one tenant. */
export async function removeState(database: CopyDatabase, tenant: string): Promise<void> {
  await database.rows(`delete from ${incomingCopy} where tenant = ?1`, [tenant]);
}

/** No copy goes on here from now on: what is left has to be removed before another one begins. */
export async function renameCopy(database: CopyDatabase, tenant: string): Promise<void> {
  await database.rows(
    `update ${incomingCopy} set value = 'being removed' where tenant = ?1 and name = 'copy'`,
    [tenant],
  );
}

/** @returns `undefined` where no copy began, or something else wrote what is there. */
export async function readState(
  database: CopyDatabase,
  tenant: string = wholeVault,
): Promise<CopyState | undefined> {
  const exists = selectTable(database.engine, incomingCopy);
  if ((await database.rows(exists)).length === 0) return undefined;
  const found = new Map(
    (
      await database.rows(`select name, value from ${incomingCopy} where tenant = ?1`, [tenant])
    ).map(([name, value]) => [String(name), String(value)]),
  );
  const copy = found.get('copy');
  const indexes: unknown = JSON.parse(found.get('indexes') ?? 'null');
  if (copy === undefined || !Array.isArray(indexes)) return undefined;
  found.delete('copy');
  found.delete('indexes');
  const tables = [...found].map(([name, value]) => [name, progressOf(value)]);
  return { copy, indexes: indexes.map(String), tables: Object.fromEntries(tables) };
}

function progressOf(value: string): TableProgress {
  const { after, rows, isDone }: Record<string, unknown> = JSON.parse(value);
  return {
    after: Array.isArray(after) ? after.map(decoded) : undefined,
    rows: Number(rows),
    isDone: isDone === true,
  };
}

/** Of JSON, which has neither bytes nor large integers. */
function decoded(value: unknown): SqlValue {
  if (!isObject(value)) return value as SqlValue;
  if ('bytes' in value) return Buffer.from(String(value['bytes']), 'base64');
  return BigInt(String(value['integer'])) as unknown as SqlValue;
}

function encoded(value: unknown): unknown {
  if (value instanceof Uint8Array) return { bytes: Buffer.from(value).toString('base64') };
  return typeof value === 'bigint' ? { integer: String(value) } : value;
}

export interface TargetParts
  extends Pick<CopyTarget, 'database' | 'serve' | 'release' | 'isResumed'> {
  readonly state: CopyState;
  readonly tenant?: string;
  /** Where servers use the target while rows are copied. */
  readonly requireRoom?: () => void;
}

/** The parts that are the same on both engines. */
export function createTarget({
  database,
  serve,
  release,
  isResumed,
  tenant = wholeVault,
  requireRoom = () => undefined,
  ...given
}: TargetParts): CopyTarget {
  let { state } = given;
  return {
    database,
    isResumed,
    requireRoom,
    get state() {
      return state;
    },
    saveTable: async (table, progress) => {
      const { after, ...others } = progress;
      const value = JSON.stringify({ ...others, after: after?.map(encoded) });
      await database.rows(
        `insert into ${incomingCopy} (tenant, name, value) values (?1, ?2, ?3)
          on conflict (tenant, name) do update set value = excluded.value`,
        [tenant, table, value],
      );
      // A transaction that fails ends the copy, so that nothing reads what was not committed.
      state = { ...state, tables: { ...state.tables, [table]: progress } };
    },
    createIndexes: async () => {
      if (state.indexes.length === 0) return;
      await writing(database, async () => {
        await database.run(...state.indexes);
        await database.rows(`update ${incomingCopy} set value = '[]' where name = 'indexes'`);
      });
      state = { ...state, indexes: [] };
    },
    serve,
    release,
  };
}

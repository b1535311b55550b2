/** Sealed columns: under which versions of keys their values are, and the rows under earlier ones. */
import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { TenantId } from '../../base/ids.ts';
import type { Query } from '../store.ts';
import { storedForm } from '../stored-form.ts';
import { type AnyRow, kindOf, type SqlValue, shapes } from '../tables.ts';
import { storedIn } from './stored.ts';

interface SealedColumn {
  readonly column: string;
  /** Of the key that seals it. */
  readonly purpose: 'data' | 'reply';
}

/** Every column that a key of a tenant seals. A test compares it with the schema. */
export const sealedColumns = {
  tokens: { column: 'data', purpose: 'data' },
  token_intents: { column: 'data', purpose: 'data' },
  proxies: { column: 'body', purpose: 'data' },
  reactors: { column: 'body', purpose: 'data' },
  reactor_runs: { column: 'body', purpose: 'data' },
  client_keys: { column: 'private_key', purpose: 'data' },
  webhooks: { column: 'body', purpose: 'data' },
  approvals: { column: 'body', purpose: 'data' },
  events: { column: 'body', purpose: 'data' },
  replies: { column: 'reply', purpose: 'reply' },
} as const satisfies Record<string, SealedColumn>;

export type SealedName = keyof typeof sealedColumns;
export const sealedNames = Object.keys(sealedColumns) as readonly SealedName[];

/** For a query of a table that is known by its name alone. */
export type AnyDatabase = Kysely<Record<string, Record<string, SqlValue>>>;

/** Where a sealed value names the version of its key; see `keys/envelope.ts`. */
const versionOf = (table: SealedName): RawBuilder<Uint8Array> =>
  sql<Uint8Array>`substr(${sql.ref(sealedColumns[table].column)}, 2, 4)`;

function versionBytes(version: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(version);
  return bytes;
}

export interface VersionCount {
  readonly version: number;
  readonly rows: number;
  /** Of tokens and token intents: those that have a fingerprint. */
  readonly fingerprinted: number;
  /** Of tokens: those that are found by search terms. */
  readonly searchable: number;
}

interface CountedVersion {
  readonly key_version: Uint8Array;
  readonly row_count: number;
  readonly fingerprinted: number | null;
  readonly searchable: number | null;
}

/** How many rows of a tenant name each version. It reads the whole table of the tenant. */
export function countsByVersion(table: SealedName, tenant: TenantId): Query<CountedVersion> {
  const sum = (condition: string) =>
    sql<number>`sum(case when ${sql.raw(condition)} then 1 else 0 end)`;
  const conditions = conditionsOf(table);
  return (db) =>
    (db as unknown as AnyDatabase)
      .selectFrom(table as string)
      .select([
        versionOf(table).as('key_version'),
        sql<number>`count(*)`.as('row_count'),
        sum(conditions.fingerprinted).as('fingerprinted'),
        sum(conditions.searchable).as('searchable'),
      ])
      .where('tenant_id', '=', storedIn(table, 'tenant_id', tenant))
      .groupBy(versionOf(table)) as unknown as ReturnType<Query<CountedVersion>>;
}

function conditionsOf(table: SealedName) {
  if (table === 'tokens') {
    return {
      fingerprinted: 'fingerprint is not null',
      searchable: 'search_indexes is not null or metadata is not null',
    };
  }
  const fingerprinted = table === 'token_intents' ? "fingerprint <> ''" : '1 = 0';
  return { fingerprinted, searchable: '1 = 0' };
}

/** Without the rows that are too short to name a version, which the vault did not write. */
export function readVersionCounts(rows: readonly CountedVersion[]): readonly VersionCount[] {
  return rows.flatMap(({ key_version: bytes, row_count, fingerprinted, searchable }) => {
    if (!(bytes instanceof Uint8Array) || bytes.length !== 4) return [];
    const version = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0);
    return [
      {
        version,
        rows: Number(row_count),
        fingerprinted: Number(fingerprinted ?? 0),
        searchable: Number(searchable ?? 0),
      },
    ];
  });
}

/** A row with more sealed bytes is not read with others: see {@link EarlierRow}. */
export const pageBytesMax = 16_384;

export interface EarlierRows {
  readonly tenant: TenantId;
  /** Rows under versions before it. */
  readonly version: number;
  /** The key of the row after which the page begins. */
  readonly after: AnyRow | undefined;
  readonly rowsMax: number;
}

/** A whole row, except that the sealed value is null if it has more than {@link pageBytesMax}. */
export type EarlierRow = Readonly<Record<string, SqlValue>>;

/** Rows under earlier versions of their key, in the order of the primary key. */
export function rowsUnderEarlierKeys(
  table: SealedName,
  { tenant, version, after, rowsMax }: EarlierRows,
): Query<EarlierRow> {
  const { columns, key } = shapes[table];
  const sealed: string = sealedColumns[table].column;
  const order = key.filter((column) => column !== 'tenant_id');
  const small = sql`case when octet_length(${sql.ref(sealed)}) <= ${sql.lit(pageBytesMax)}
    then ${sql.ref(sealed)} end`;
  const selected = columns.map(
    (column) => (column === sealed ? small : sql.ref(column)) as RawBuilder<SqlValue>,
  );
  const places = sql.join(order.map((column) => sql.ref(column)));
  const values = order.map(
    (column) => sql`${storedForm(kindOf(table, column), after?.[column] ?? null)}`,
  );
  return (db) => {
    const select = (db as unknown as AnyDatabase)
      .selectFrom(table as string)
      .select(selected.map((expression, at) => expression.as(columns[at] ?? '')))
      .where('tenant_id', '=', storedIn(table, 'tenant_id', tenant))
      .where(sql<boolean>`${versionOf(table)} < ${versionBytes(version)}`)
      .limit(rowsMax);
    const page =
      after === undefined
        ? select
        : select.where(sql<boolean>`(${places}) > (${sql.join(values)})`);
    return order.reduce((ordered, column) => ordered.orderBy(column), page);
  };
}

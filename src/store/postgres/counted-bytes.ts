/**
 * Counts the stored bytes of applications in the statement that writes the rows, and compares them with the ceilings of
 * its changes. What is written is known here; what was stored before only the statement reads.
 */
import type { FlatChange, RowOperation } from '../change.ts';
import type { StorageCeiling } from '../growth.ts';
import {
  countedTables,
  isCounted,
  ownerOnPostgres,
  sizeReader,
  sizeSql,
} from '../migrations/stored-sizes.ts';
import { idBytes, tenantNumber } from '../stored-form.ts';
import type { SqlValue, Table } from '../tables.ts';

interface OwnedBytes {
  readonly tenant: string;
  readonly application: string;
  bytes: number;
}

/** By how much the rows of a statement make the bytes grow, without those that they replace or that are removed. */
export class StatementBytes {
  readonly #written = new Map<string, OwnedBytes>();

  get written(): readonly OwnedBytes[] {
    return [...this.#written.values()];
  }

  add(tenant: string, application: string, bytes: number): void {
    const name = nameOf({ tenant, application });
    const known = this.#written.get(name);
    if (known) known.bytes += bytes;
    else this.#written.set(name, { tenant, application, bytes });
  }

  /** The bytes that count under the ceiling. */
  under({ tenant_id, application_id }: StorageCeiling): number {
    let sum = 0;
    for (const { tenant, application, bytes } of this.#written.values()) {
      if (tenant === tenant_id && application === (application_id ?? application)) sum += bytes;
    }
    return sum;
  }
}

const nameOf = ({ tenant, application }: Pick<OwnedBytes, 'tenant' | 'application'>) =>
  `${tenant} ${application}`;

type CountWritten = (
  count: StatementBytes,
  values: readonly SqlValue[],
  stored: readonly SqlValue[],
) => void;

/**
 * Counts a row that is inserted or that replaces another: `undefined` for other actions and tables.
 * @param columns those for which values are given.
 */
export function countWritten(
  table: Table,
  action: RowOperation['action'],
  columns: readonly string[],
): CountWritten | undefined {
  if (!isCounted(table) || (action !== 'insert' && action !== 'replace')) return undefined;
  const tenant = columns.indexOf('tenant_id');
  const owners = countedTables[table].owner.map((column) => columns.indexOf(column));
  const size = sizeReader(table, columns);
  return (count, values, stored) => {
    const owner = owners.find((place) => values[place] != null);
    if (owner !== undefined) count.add(String(values[tenant]), String(values[owner]), size(stored));
  };
}

/** The columns that a part returns for each row it removes or replaces: owner and bytes if the row is counted. */
export function returnedOf(table: Table, row: string): string {
  if (!isCounted(table)) return '1';
  const { tenant, application, isCounted: condition } = ownerOnPostgres(table, row);
  const sure = (expression: string) =>
    condition === undefined ? expression : `case when ${condition} then ${expression} end`;
  const owner = `${sure(tenant)} as tenant_id, ${sure(application)} as application_id`;
  return `${owner}, ${sizeSql(table, row)} as bytes`;
}

/** The slot of the connection that writes, so that concurrent writers do not wait for one row. */
const slot = 'pg_backend_pid() % 256';

/**
 * The part that writes the counters.
 * @param written the parameters of {@link countValues}.
 * @param gone the parts that return what {@link returnedOf} says.
 */
export function counterPart(written: readonly string[], gone: readonly string[]): string {
  const added = `select * from unnest(${written.join(', ')}) as n (tenant_id, application_id, bytes)`;
  return `insert into stored_bytes as s (tenant_id, application_id, slot, bytes)
    select tenant_id, application_id, ${slot}, ${
      gone.length === 0
        ? `bytes from (${added}) as counted`
        : `sum(bytes)::bigint from (${[added, ...gone.map(lostIn)].join(' union all ')}) as counted
      where application_id is not null
      group by tenant_id, application_id having sum(bytes) <> 0 order by tenant_id, application_id`
    }
    on conflict (tenant_id, application_id, slot) do update set bytes = s.bytes + excluded.bytes returning 1`;
}

const lostIn = (part: string) => `select tenant_id, application_id, -bytes from ${part}`;

interface Owner {
  readonly tenant: number;
  /** Absent in what counts for all of the tenant. */
  readonly application: Buffer | undefined;
}

/** The order in which the database sorts them, so that no two statements wait for each other. */
function byOwner(one: Owner, other: Owner): number {
  if (one.tenant !== other.tenant) return one.tenant - other.tenant;
  return Buffer.compare(one.application ?? none, other.application ?? none);
}

const none = Buffer.alloc(0);

/** Tenants, applications, and bytes. */
export function countValues(count: StatementBytes): readonly [SqlValue[], SqlValue[], SqlValue[]] {
  const written = count.written.map(({ tenant, application, bytes }) => ({
    tenant: tenantNumber(tenant),
    application: idBytes(application),
    bytes,
  }));
  if (written.length > 1) written.sort(byOwner);
  return [
    written.map(({ tenant }) => tenant),
    written.map(({ application }) => application),
    written.map(({ bytes }) => bytes),
  ];
}

interface CeilingCheckParts {
  /** The parameters of {@link ceilingValues}. */
  readonly given: readonly string[];
  /** The parts that return what {@link returnedOf} says. */
  readonly gone: readonly string[];
  readonly counters: string;
  /** Whether the statement does one change alone. */
  readonly isOfOne: boolean;
}

/**
 * Conditions of the statement: it takes the locks, writes the counters, and compares them with the ceilings, in this
 * order. What one change removes makes room for it. Of several changes, one that stores less would let through another
 * that stores more: their statement fails instead, and each change is tried alone.
 *
 * Citus does inner queries in their order on the coordinator, and what is around them on any machine. So the lock is
 * an inner query too: otherwise each writer would take it on another machine, and after the comparison.
 */
export function ceilingConditions({ given, gone, counters, isOfOne }: CeilingCheckParts): string[] {
  const [, tenants, applications] = given;
  const lost = gone.map(
    (part) => `coalesce((select sum(bytes) from ${part} as g where g.tenant_id = c.tenant
      and g.application_id is not null and (c.application is null or g.application_id = c.application)), 0)`,
  );
  const sum = `(${['0', ...lost].join(' + ')})::bigint`;
  return [
    `(select lock_stored_bytes(${tenants}, ${applications}))`,
    `(select count(*) from ${counters}) >= 0`,
    `(select bool_and(check_stored_bytes_of(c.quota, c.tenant, c.application,
      ${isOfOne ? `c.most, c.added - ${sum}` : `c.most - ${sum}, c.added`}))
      from unnest(${given.join(', ')}) as c (quota, tenant, application, most, added))`,
  ];
}

/** Quotas, tenants, applications, most, and added: of each ceiling once, in the order in which all take the locks. */
export function ceilingValues(
  changes: readonly FlatChange[],
  count: StatementBytes,
): readonly [SqlValue[], SqlValue[], SqlValue[], SqlValue[], SqlValue[]] {
  const ceilings = new Map<string, StorageCeiling>();
  for (const change of changes) {
    for (const ceiling of change.ceilings) {
      const { quota, tenant_id, application_id, bytes } = ceiling;
      ceilings.set([quota, tenant_id, application_id, bytes].join(' '), ceiling);
    }
  }
  const all = [...ceilings.values()].map((ceiling) => ({
    ceiling,
    tenant: tenantNumber(ceiling.tenant_id),
    application: ceiling.application_id === undefined ? undefined : idBytes(ceiling.application_id),
  }));
  all.sort(byOwner);
  return [
    all.map(({ ceiling }) => ceiling.quota),
    all.map(({ tenant }) => tenant),
    all.map(({ application }) => application ?? null),
    all.map(({ ceiling }) => ceiling.bytes),
    all.map(({ ceiling }) => count.under(ceiling)),
  ];
}

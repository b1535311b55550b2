/**
 * Counts the stored bytes of applications, in the transaction that writes the rows. The writer adds up what a group
 * changes in memory and writes one row for each application: a trigger would write one for each change.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { columnsOf, type RowOperation } from '../change.ts';
import type { StorageCeiling } from '../growth.ts';
import {
  type CountedName,
  countedTables,
  ownerSql,
  sizeReader,
  sizeSql,
} from '../migrations/stored-sizes.ts';
import { idBytes, tenantNumber, valueOfStored } from '../stored-form.ts';
import { kindOf, type SqlValue, shapes } from '../tables.ts';

/** By how much bytes change, by tenant and by application of a tenant. */
type Deltas = Map<
  string,
  { readonly tenant: string; readonly application?: string; bytes: number }
>;

export interface WrittenBytes {
  /** Forgets what a group before has left. */
  beginGroup(): void;
  /** Forgets what the changes of the group have added so far: they were rolled back. */
  beginAgain(): void;
  /** Begins the count of one change, which is added to the group's count when the change is done. */
  beginChange(): void;
  /** Before a counted row is replaced: counts what it was. */
  replaced(operation: RowOperation, stored: readonly SqlValue[]): void;
  /** Counts written values. */
  written(operation: RowOperation, stored: readonly SqlValue[]): void;
  /** Removes a counted row; returns how many rows there were. */
  remove(operation: RowOperation, stored: readonly SqlValue[]): number;
  /** The first ceiling that the change exceeds by growing, if any. */
  exceeded(ceilings: readonly StorageCeiling[]): StorageCeiling | undefined;
  endChange(): void;
  /** Writes what the group has changed. */
  write(): void;
}

export function createByteCount(database: DatabaseSync): WrittenBytes {
  const statements = createRowStatements(database);
  // A counter that an attacker with write access made too large stays as large as it can be: a sum that is no integer
  // would end the whole group, with the changes of other tenants.
  const add = database.prepare(`insert into stored_bytes (tenant_id, application_id, slot, bytes)
    values (?, ?, 0, ?) on conflict (tenant_id, application_id, slot)
    do update set bytes = cast(bytes + excluded.bytes as integer)`);
  const sum = 'select coalesce(sum(bytes), 0) as bytes from stored_bytes where tenant_id = ?';
  const bytesOfTenant = database.prepare(sum);
  const bytesOfApplication = database.prepare(`${sum} and application_id = ?`);
  let ofGroup: Deltas = new Map();
  let ofChange: Deltas = new Map();
  /** The values at the beginning of the transaction. */
  let storedBefore = new Map<string, number>();

  function count(operation: RowOperation, application: SqlValue, bytes: number): void {
    const tenant = String(operation.values[placesIn(operation).tenant]);
    addTo(ofChange, { tenant, application: String(application), bytes });
  }

  function countRow(operation: RowOperation, row: Record<string, unknown> | undefined): void {
    if (row === undefined) return;
    const [column = ''] = countedTables[operation.table as CountedName].owner;
    const kind = kindOf(operation.table, column);
    const owner = valueOfStored(kind, row['owner'] as SqlValue);
    if (owner !== null) count(operation, owner, -Number(row['bytes']));
  }

  function storedBytes({ tenant_id, application_id }: StorageCeiling): number {
    const name = nameOf(tenant_id, application_id);
    const known = storedBefore.get(name);
    if (known !== undefined) return known;
    const tenant = tenantNumber(tenant_id);
    const row =
      application_id === undefined
        ? bytesOfTenant.get(tenant)
        : bytesOfApplication.get(tenant, idBytes(application_id));
    const bytes = Number(row?.['bytes']);
    storedBefore.set(name, bytes);
    return bytes;
  }

  function isExceeded(ceiling: StorageCeiling): boolean {
    const name = nameOf(ceiling.tenant_id, ceiling.application_id);
    const added = ofChange.get(name)?.bytes ?? 0;
    if (added <= 0) return false;
    return storedBytes(ceiling) + (ofGroup.get(name)?.bytes ?? 0) + added > ceiling.bytes;
  }

  return {
    beginGroup: () => {
      ofGroup = new Map();
      storedBefore = new Map();
    },
    beginAgain: () => {
      ofGroup = new Map();
    },
    beginChange: () => {
      if (ofChange.size > 0) ofChange = new Map();
    },
    replaced: (operation, stored) => {
      const key = placesIn(operation).key.map((place) => stored[place] ?? null);
      countRow(operation, statements(operation).get(...key));
    },
    written: (operation, stored) => {
      const { owner, size } = placesIn(operation);
      const application = owner.map((place) => operation.values[place]).find((one) => one != null);
      if (application != null) count(operation, application, size(stored));
    },
    remove: (operation, stored) => {
      const row = statements(operation).get(...stored);
      countRow(operation, row);
      return row === undefined ? 0 : 1;
    },
    exceeded: (ceilings) => ceilings.find(isExceeded),
    endChange: () => {
      for (const delta of ofChange.values()) {
        const { tenant, application, bytes } = delta;
        if (application !== undefined) addTo(ofGroup, { tenant, application, bytes });
      }
    },
    write: () => {
      for (const { tenant, application, bytes } of ofGroup.values()) {
        if (application === undefined || bytes === 0) continue;
        add.run(tenantNumber(tenant), idBytes(application), bytes);
      }
    },
  };
}

const nameOf = (tenant: string, application?: string) =>
  application === undefined ? tenant : `${tenant} ${application}`;

interface Delta {
  readonly tenant: string;
  readonly application: string;
  readonly bytes: number;
}

/** To the application's and to the tenant's. */
function addTo(deltas: Deltas, { tenant, application, bytes }: Delta): void {
  const ofTenant = deltas.get(tenant);
  if (ofTenant) ofTenant.bytes += bytes;
  else deltas.set(tenant, { tenant, bytes });
  const name = nameOf(tenant, application);
  const known = deltas.get(name);
  if (known) known.bytes += bytes;
  else deltas.set(name, { tenant, application, bytes });
}

interface Places {
  readonly tenant: number;
  readonly key: readonly number[];
  readonly owner: readonly number[];
  readonly size: (stored: readonly SqlValue[]) => number;
}

const placesByOperation = new Map<string, Places>();

/** The positions of the values in an operation on a counted table. */
function placesIn({ table, action }: RowOperation): Places {
  const name = `${action} ${table}`;
  const known = placesByOperation.get(name);
  if (known) return known;
  const columns = columnsOf(table, action);
  const counted = table as CountedName;
  const places: Places = {
    tenant: columns.indexOf('tenant_id'),
    key: shapes[table].key.map((column) => columns.indexOf(column)),
    owner: countedTables[counted].owner.map((column) => columns.indexOf(column)),
    size: sizeReader(counted, columns),
  };
  placesByOperation.set(name, places);
  return places;
}

/** Removes a row and gives what it counted as, or gives what one counts as that is to be replaced. */
function createRowStatements(database: DatabaseSync): (operation: RowOperation) => StatementSync {
  const prepared = new Map<string, StatementSync>();
  return ({ table, action }) => {
    const name = `${action} ${table}`;
    const known = prepared.get(name);
    if (known) return known;
    const statement = database.prepare(sqlOf(table as CountedName, action));
    prepared.set(name, statement);
    return statement;
  };
}

function sqlOf(table: CountedName, action: RowOperation['action']): string {
  const counted = `${sizeSql(table, table)} as bytes, ${ownerSql(table, table)} as owner`;
  const same = (columns: readonly string[]) => columns.map((one) => `${one} = ?`).join(' and ');
  return action === 'remove'
    ? `delete from ${table} where ${same(columnsOf(table, action))} returning ${counted}`
    : `select ${counted} from ${table} where ${same(shapes[table].key)}`;
}

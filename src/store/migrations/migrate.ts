/**
 * Migrations: what each version of the schema adds, applied once and in order, while servers of the
 * release before go on working ("expand, then contract": docs/postgresql.md).
 */

import { MovedVaultError, movedServer, movingServer } from '../outgoing-copy.ts';
import { restoringServer, UnfinishedRestoreError } from '../unfinished-restore.ts';
import { vault } from './0001-vault.ts';
import { sessionKeys } from './0002-session-keys.ts';
import { clientKeyUses } from './0003-client-key-uses.ts';
import { tenantHosts } from './0004-tenant-hosts.ts';
import { storedBytes } from './0005-stored-bytes.ts';
import { intentsOfClients } from './0006-intents-of-clients.ts';
import { netCeilings } from './0007-net-ceilings.ts';
import { provenKeyUses } from './0008-proven-key-uses.ts';
import { countsInStatements } from './0009-counts-in-statements.ts';
import { dueCalls } from './0010-due-calls.ts';
import { keyRotations } from './0011-key-rotations.ts';
import { people } from './0012-people.ts';
import { pageOrigins } from './0013-page-origins.ts';
import { egress } from './0014-egress.ts';
import { movedTenants } from './0015-moved-tenants.ts';
import { signInMethods } from './0016-sign-in-methods.ts';
import { logPushes } from './0017-log-pushes.ts';
import { linkMakers } from './0018-link-makers.ts';
import { activity } from './0019-activity.ts';
import { logIndex } from './0020-log-index.ts';
import { chargedEvents } from './0021-charged-events.ts';
import { egressPolicies } from './0022-egress-policies.ts';
import { listedRows } from './0023-listed-rows.ts';
import { approvals } from './0024-approvals.ts';
import type { ColumnTypes } from './column-types.ts';

export interface Migration {
  readonly statements: (types: ColumnTypes) => readonly string[];
  /**
   * The oldest schema version whose servers still work after it. One that expands leaves it as it was: it adds
   * tables, indexes, and columns that may stay empty. One that contracts raises it to a version whose
   * servers no longer use what it removes, which is earlier than its own.
   */
  readonly oldestServer: number;
}

/** The migration at index n leads to version n + 1. Released ones are never edited. */
export const released: readonly Migration[] = [
  { statements: vault, oldestServer: 1 },
  { statements: sessionKeys, oldestServer: 1 },
  { statements: clientKeyUses, oldestServer: 1 },
  { statements: tenantHosts, oldestServer: 1 },
  { statements: storedBytes, oldestServer: 1 },
  { statements: intentsOfClients, oldestServer: 1 },
  { statements: netCeilings, oldestServer: 1 },
  { statements: provenKeyUses, oldestServer: 1 },
  { statements: countsInStatements, oldestServer: 1 },
  { statements: dueCalls, oldestServer: 1 },
  { statements: keyRotations, oldestServer: 1 },
  { statements: people, oldestServer: 1 },
  { statements: pageOrigins, oldestServer: 1 },
  { statements: egress, oldestServer: 1 },
  { statements: movedTenants, oldestServer: 1 },
  { statements: signInMethods, oldestServer: 1 },
  { statements: logPushes, oldestServer: 1 },
  { statements: linkMakers, oldestServer: 1 },
  { statements: activity, oldestServer: 1 },
  { statements: logIndex, oldestServer: 1 },
  { statements: chargedEvents, oldestServer: 1 },
  { statements: egressPolicies, oldestServer: 1 },
  { statements: listedRows, oldestServer: 1 },
  { statements: approvals, oldestServer: 1 },
];

export const schemaVersion = released.length;

/** What a database says of itself; 0 of one that is empty. */
export interface SchemaState {
  readonly version: number;
  readonly oldestServer: number;
}

/** Servers of this release no longer work with the schema that a later one made. */
class DowngradeError extends Error {
  constructor({ version, oldestServer }: SchemaState, known: number) {
    super(
      `The database has schema version ${version}, which needs a server of schema version ${oldestServer} ` +
        `or later; this release knows ${known}. Start a later release. Nothing was changed.`,
    );
    this.name = 'DowngradeError';
  }
}

/**
 * The statements that lead from the version that was found to the last of the migrations, the new state included.
 * The caller runs them in one transaction that no other server can enter at the same time.
 * @throws DowngradeError, UnfinishedRestoreError
 */
export function pendingStatements(
  found: SchemaState,
  types: ColumnTypes,
  migrations: readonly Migration[] = released,
): string[] {
  const refusal = refusalOf(found, migrations.length);
  if (refusal) throw refusal;
  const pending = migrations.slice(found.version);
  const last = pending.at(-1);
  if (last === undefined) return [];
  return [
    ...pending.flatMap(({ statements }) => statements(types)),
    'delete from schema_version',
    `insert into schema_version (version, oldest_server) values (${migrations.length}, ${last.oldestServer})`,
  ];
}

/** Why a server that knows the schema up to a version cannot work with what was found, if it cannot. */
export function refusalOf(found: SchemaState, known = schemaVersion): Error | undefined {
  if (found.oldestServer === restoringServer) return new UnfinishedRestoreError();
  if (found.oldestServer === movedServer) return new MovedVaultError({ isOpened: true });
  if (found.oldestServer === movingServer) return new MovedVaultError({ isOpened: false });
  return found.oldestServer > known ? new DowngradeError(found, known) : undefined;
}

export const createVersionTable = (types: ColumnTypes): string =>
  `create table if not exists schema_version (
    version ${types.integer} not null,
    oldest_server ${types.integer} not null default 1
  ) ${types.strict}`;

export const selectState = 'select version, oldest_server from schema_version';

/** @param row of {@link selectState}, if there is one. */
export function stateOf(row: unknown): SchemaState {
  const { version = 0, oldest_server = 0 } = (row ?? {}) as Record<string, unknown>;
  return { version: Number(version), oldestServer: Number(oldest_server) };
}

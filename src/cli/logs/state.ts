/** `strongroom logs verify --state`: verifies the log, and the tables that it must explain. */

import { readVaultKeys } from '../../access/keyrings/open-vault-keys.ts';
import { tombstoneOf } from '../../access/keyrings/tombstone-row.ts';
import type { ProcessVaultKeys, VaultKeys } from '../../access/keyrings/vault-keys.ts';
import { readLogs, tenantsWithLogsOrRows } from '../../audit/read.ts';
import type { LogRecord } from '../../audit/records.ts';
import { type StateFinding, StateWalk } from '../../audit/state-walk.ts';
import { systemClock } from '../../base/clock.ts';
import { isIntegrityError } from '../../base/errors.ts';
import type { TenantId } from '../../base/ids.ts';
import { pooledRandom } from '../../base/random.ts';
import type { Keyring } from '../../keys/keyring.ts';
import type { SharedKeys } from '../../keys/root/root-key.ts';
import { openRootKeys } from '../../keys/root/sources.ts';
import { readStored } from '../../keys/root/wrapped.ts';
import type { Config } from '../../runtime/config/config.ts';
import { lentKeys } from '../../runtime/lent-keys.ts';
import type { ReadOnlyStore } from '../../store/open/read-only.ts';
import { tenantWithId } from '../../store/queries/tenants.ts';
import { unverifiedColumns } from '../../store/stored-row.ts';
import type { Row } from '../../store/tables.ts';
import { type Flags, UsageError } from '../terminal/command.ts';
import { grouped } from '../terminal/progress.ts';

/** The results of all tenants. */
export interface State {
  rows: number;
  beyond: number;
  /** Tenants that are being copied into this vault, which are not verified before they are complete. */
  readonly incoming: TenantId[];
  readonly findings: StateFinding[];
}

export const noState = (): State => ({ rows: 0, beyond: 0, incoming: [], findings: [] });

export interface StateReading {
  readonly store: ReadOnlyStore;
  readonly tenants: readonly TenantId[];
  /** Includes tenants without a log, which an attacker wrote to the database outside the vault. */
  readonly whole: boolean;
}

/** @throws UsageError with an exported log, which holds no rows. */
export function refuseFile(flags: Flags): void {
  if (flags['state'] !== true) return;
  throw new UsageError('--state needs a database and cannot be combined with --file');
}

/** What opens the rows. */
interface KeyedPlace extends Pick<Config, 'rootKey' | 'dataDir'> {
  /** The root key, where people hold it in shares. A server that runs lends it otherwise. */
  readonly sharedKeys?: SharedKeys | undefined;
}

/** The records of the log as they are read; the state is complete when the last one was. */
export async function* withState(
  reading: StateReading,
  state: State,
  { rootKey, dataDir, sharedKeys }: KeyedPlace,
): AsyncGenerator<LogRecord> {
  const settings = { createIfMissing: false, clock: systemClock, random: pooledRandom() };
  const roots = await openRootKeys({
    ...rootKey,
    ...settings,
    sharedKeys: sharedKeys ?? lentKeys(dataDir),
  });
  try {
    // Without the right root key no row is as the vault wrote it.
    const vaultKeys = await readVaultKeys({ ...settings, store: reading.store, roots });
    yield* compared(reading, state, vaultKeys);
  } finally {
    roots.close();
  }
}

async function* compared(
  { store, tenants, whole }: StateReading,
  state: State,
  vaultKeys: ProcessVaultKeys | undefined,
): AsyncGenerator<LogRecord> {
  for (const tenant of whole ? await tenantsWithLogsOrRows(store) : tenants) {
    const [stored] = await store.select(tenantWithId(tenant));
    // The walk compares the row with the log, and says so where the vault did not write it.
    const row = stored && unverifiedColumns(stored);
    if (row && isIncoming(row, vaultKeys)) {
      state.incoming.push(tenant);
      continue;
    }
    const keyring = vaultKeys && (await keyringOf(vaultKeys, row));
    const wasDeleted =
      row !== undefined &&
      vaultKeys !== undefined &&
      (await vaultKeys.isMarkedDeleted({ ...tombstoneOf(row), mark: row.proof }));
    const walk = new StateWalk({ tenant, keyring, wasDeleted, store });
    for await (const record of readLogs(store, [tenant])) {
      walk.take(record);
      yield record;
    }
    const { rows, beyond, findings } = await walk.finish();
    state.rows += rows;
    state.beyond += beyond;
    state.findings.push(...findings);
  }
}

/** Its keyring is still that of the vault that it comes from. */
function isIncoming(row: Row<'tenants'>, vaultKeys: ProcessVaultKeys | undefined): boolean {
  const vault = readStored(row.keyring)?.header?.vault;
  return row.away_until !== null && vault !== undefined && vault !== vaultKeys?.vault;
}

/** Undefined for a deleted tenant, and for a row that the vault did not write. */
async function keyringOf(
  vaultKeys: VaultKeys,
  row: Row<'tenants'> | undefined,
): Promise<Keyring | undefined> {
  if (row === undefined || row.deleted_at !== null) return undefined;
  try {
    return await vaultKeys.openKeyring({ tenant: row.tenant_id, wrapped: row.keyring });
  } catch (error) {
    if (isIntegrityError(error)) return undefined;
    throw error;
  }
}

const findingsShownMax = 20;

/** The report for people. */
export function describeState({ rows, beyond, incoming, findings }: State): string {
  const more = findings.length - findingsShownMax;
  const lines = [
    findings.length === 0
      ? 'The log explains every row of the database.'
      : 'The log does NOT explain these rows:',
    ...findings.slice(0, findingsShownMax).map(describeFinding),
    ...(more > 0 ? [`  and ${grouped(more)} more`] : []),
    `  ${grouped(rows)} rows compared`,
    ...(beyond > 0 ? [`  ${grouped(beyond)} of them are older than the stored log`] : []),
    ...incoming.map((id) => `  tenant ${id} is being copied into this vault, and was not verified`),
  ];
  return `${lines.join('\n')}\n`;
}

function describeFinding({ kind, message, tenant_id, stream_id, seq }: StateFinding): string {
  const about = kind === 'forged' ? '' : ' is the last about it';
  const entry = seq === undefined ? '' : `\n    entry ${seq} of stream ${stream_id}${about}`;
  return `  ${kind}: ${message}\n    in tenant ${tenant_id}${entry}`;
}

/** What a copy verifies: the vault before it is copied, each table of the copy, and the copy as a vault. */
import { LogVerifier } from '../../audit/verify.ts';
import type { SharedKeys } from '../../keys/root/root-key.ts';
import type { Config } from '../../runtime/config/config.ts';
import { type CopyDatabase, onSnapshot } from '../../store/copying/copy-database.ts';
import { type CopyScope, rowsInScope } from '../../store/copying/rows.ts';
import { openReadOnly, type ReadOnlyStore } from '../../store/open/read-only.ts';
import { rootVaultKeys } from '../../store/queries/vault-keys.ts';
import { RestoreError } from '../../store/restore-error.ts';
import type { Table } from '../../store/tables.ts';
import { type LogHead, logHeads, vaultKeyIn } from '../backup/manifest.ts';
import { sharesOf, verifyRootKey } from '../backup/verify-backup.ts';
import { noState, withState } from '../logs/state.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { digestOfRows, type TableDigest } from './table-digests.ts';

export interface IntactVault {
  readonly vaultId: string | null;
  readonly heads: readonly LogHead[];
  /** The root key, where its shares were read. */
  readonly sharedKeys: SharedKeys | undefined;
}

/**
 * As `strongroom logs verify --state` does it.
 * @throws RestoreError where the vault is not as it was written, or the root key is another one.
 */
export async function requireIntact(terminal: Terminal, config: Config): Promise<IntactVault> {
  const store = await openReadOnly(config.databaseUrl ?? config.dataDir);
  try {
    const { root_key, vault_id } = vaultKeyIn(await store.select(rootVaultKeys));
    const sharedKeys = await sharesOf(terminal, store, { ...config, root_key });
    const keyed = { ...config, sharedKeys };
    await verifyRootKey(store, root_key, keyed);
    const finding = await firstFinding(store, keyed);
    if (finding !== undefined) {
      throw new RestoreError(
        `The vault is not intact: ${finding}. strongroom logs verify --state says more. Nothing was copied.`,
      );
    }
    return { vaultId: vault_id, heads: await logHeads(store), sharedKeys };
  } finally {
    await store.close();
  }
}

/** What an intact vault is known by. Nothing is verified but the root key. */
export async function identityOf(
  terminal: Terminal,
  config: Config,
): Promise<Pick<IntactVault, 'vaultId' | 'sharedKeys'>> {
  const store = await openReadOnly(config.databaseUrl ?? config.dataDir);
  try {
    const { root_key, vault_id: vaultId } = vaultKeyIn(await store.select(rootVaultKeys));
    const sharedKeys = await sharesOf(terminal, store, { ...config, root_key });
    await verifyRootKey(store, root_key, { ...config, sharedKeys });
    return { vaultId, sharedKeys };
  } finally {
    await store.close();
  }
}

/** @throws NoDatabaseError, UnfinishedRestoreError */
export async function readVaultId(config: Config): Promise<string | null> {
  const store = await openReadOnly(config.databaseUrl ?? config.dataDir);
  try {
    return vaultKeyIn(await store.select(rootVaultKeys)).vault_id;
  } finally {
    await store.close();
  }
}

/** As {@link requireIntact} does it of the copy, before servers may start there. @throws RestoreError */
export async function requireIntactCopy(
  config: Config,
  sharedKeys: SharedKeys | undefined,
): Promise<void> {
  const place = config.databaseUrl ?? config.dataDir;
  const store = await openReadOnly(place, { isUnfinished: true });
  try {
    const finding = await firstFinding(store, { ...config, sharedKeys });
    if (finding !== undefined) throw new RestoreError(`The copy is not intact: ${finding}.`);
  } finally {
    await store.close();
  }
}

async function firstFinding(
  store: ReadOnlyStore,
  keyed: Config & { readonly sharedKeys: SharedKeys | undefined },
): Promise<string | undefined> {
  const verifier = new LogVerifier({ trustedKeys: [], kept: [] });
  const state = noState();
  const reading = { store, tenants: [], whole: true };
  for await (const record of withState(reading, state, keyed)) verifier.take(record);
  const [incoming] = state.incoming;
  if (incoming !== undefined) {
    throw new RestoreError(
      `The tenant ${incoming} is being copied into the vault. Finish that copy or abandon it first.`,
    );
  }
  const [finding] = [...verifier.finish().findings, ...state.findings];
  return finding && `${finding.kind}: ${finding.message} (tenant ${finding.tenant_id})`;
}

export type TableDigests = Readonly<Record<string, TableDigest>>;

/** In the transaction that the database is in. */
export async function digestsOf(database: CopyDatabase, scope: CopyScope): Promise<TableDigests> {
  const digests: Record<string, TableDigest> = {};
  for (const table of scope.tables) {
    digests[table] = await digestOfRows(rowsInScope(scope, database, table));
  }
  return digests;
}

/** The same of a database that nobody else writes to. */
export function digestsNow(database: CopyDatabase, scope: CopyScope): Promise<TableDigests> {
  return onSnapshot(database, () => digestsOf(database, scope));
}

export function differingTables(source: TableDigests, copied: TableDigests): readonly Table[] {
  return (Object.keys(source) as Table[]).filter(
    (table) =>
      source[table]?.rows !== copied[table]?.rows ||
      source[table]?.digest !== copied[table]?.digest,
  );
}

/** @throws RestoreError, which names a table. */
export function requireSame(source: TableDigests, copied: TableDigests): void {
  const [table] = differingTables(source, copied);
  if (table === undefined) return;
  throw new RestoreError(
    `The table ${table} of the copy differs from the vault's (${copied[table]?.rows} rows, and ` +
      `${source[table]?.rows} there).`,
  );
}

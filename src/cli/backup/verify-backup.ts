/** Verifying a backup: its parts, what they hold, its log, and that the root key opens it. */
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readVaultKeys } from '../../access/keyrings/open-vault-keys.ts';
import { readLogs, tenantsWithLogs } from '../../audit/read.ts';
import { LogVerifier } from '../../audit/verify.ts';
import { systemClock } from '../../base/clock.ts';
import { pooledRandom } from '../../base/random.ts';
import { RootKeyError, type SharedKeys } from '../../keys/root/root-key.ts';
import { shamirName } from '../../keys/root/shamir.ts';
import { canUnwrap, openRootKeys, type RootKeys } from '../../keys/root/sources.ts';
import type { Config } from '../../runtime/config/config.ts';
import { schemaVersion } from '../../store/migrations/migrate.ts';
import { openBackedUp, type ReadOnlyStore } from '../../store/open/read-only.ts';
import { countRows } from '../../store/queries/count-rows.ts';
import { RestoreError } from '../../store/restore-error.ts';
import { databaseFile } from '../../store/sqlite/database.ts';
import { requireOwnSchema } from '../../store/sqlite/file-schema.ts';
import type { Table } from '../../store/tables.ts';
import type { Terminal } from '../terminal/terminal.ts';
import {
  contentOf,
  digestOf,
  logHeads,
  type Manifest,
  readManifest,
  requirePlainFile,
} from './manifest.ts';
import { readSharedKeys } from './shares.ts';

export interface VerifiedBackup {
  readonly manifest: Manifest;
  /** Of the one part. */
  readonly file: string;
  readonly digest: string;
  /** What is wrong with the log, which was so when the backup was made. */
  readonly logFindings: readonly string[];
  /** The root key, where people hold it in shares and have given them. */
  readonly sharedKeys: SharedKeys | undefined;
}

export interface BackupChecks {
  readonly config: Config;
  /** Where the root key is in shares, they are not asked for, and the key is not tried. */
  readonly withoutShares?: boolean;
  /** The root key, where it is in shares and they were given before. */
  readonly sharedKeys?: SharedKeys | undefined;
}

/**
 * Reads all of the backup and writes nothing.
 * @throws RestoreError, which names the part that is missing, altered or of another backup, or the root key.
 */
export async function verifyBackup(
  terminal: Terminal,
  directory: string,
  { config, withoutShares = false, sharedKeys: given }: BackupChecks,
): Promise<VerifiedBackup> {
  const manifest = readManifest(directory);
  const { schema, product } = manifest;
  if (schema > schemaVersion) {
    throw new RestoreError(
      `The backup has schema version ${schema}, and this release knows ${schemaVersion}. ` +
        `Use release ${product} or later.`,
    );
  }
  const file = databaseFile(directory);
  const digest = await verifyPart(directory, manifest);
  const { store, version } = await openBackedUp(file);
  try {
    requireOwnSchema(file, version);
    verifyContent(await contentOf(store, version), manifest);
    const { root_key } = manifest;
    const isUntried = withoutShares && isInShares(root_key, config);
    const sharedKeys = isUntried
      ? undefined
      : (given ?? (await sharesOf(terminal, store, { ...config, root_key })));
    if (!isUntried) await verifyRootKey(store, root_key, { ...config, sharedKeys });
    return { manifest, file, digest, logFindings: await findingsIn(store), sharedKeys };
  } finally {
    await store.close();
  }
}

async function verifyPart(directory: string, manifest: Manifest): Promise<string> {
  const [part] = manifest.parts;
  if (part === undefined) throw new RestoreError('manifest.json names no part.');
  const file = join(directory, part.name);
  if (!existsSync(file)) throw new RestoreError(`${file} is missing from the backup.`);
  requirePlainFile(file);
  // SQLite would take what it holds for a part of the database.
  for (const suffix of ['-wal', '-journal']) {
    const size = statSync(`${file}${suffix}`, { throwIfNoEntry: false })?.size ?? 0;
    if (size > 0)
      throw new RestoreError(`${file}${suffix} is not a part of the backup. Remove it.`);
  }
  if (statSync(file).size === part.bytes) {
    const digest = await digestOf(file);
    if (digest === part.sha256) return digest;
  }
  throw new RestoreError(await describeForeign(file, manifest));
}

async function describeForeign(
  file: string,
  { vault_id, logs, schema }: Manifest,
): Promise<string> {
  const altered = `${file} was altered or damaged: it is not the one in manifest.json.`;
  try {
    const { store, version } = await openBackedUp(file);
    try {
      const found = await contentOf(store, version);
      if (found.vault_id !== null && found.vault_id !== vault_id) {
        return `${file} is of another vault (${found.vault_id}) than manifest.json (${vault_id}).`;
      }
      const isOther = version !== schema || JSON.stringify(found.logs) !== JSON.stringify(logs);
      return isOther ? `${file} is of another backup of this vault, or was altered.` : altered;
    } finally {
      await store.close();
    }
  } catch {
    // What cannot be read is damaged.
    return altered;
  }
}

/** @throws RestoreError where the copy holds something else than the manifest says. */
export function verifyContent(
  found: Pick<Manifest, 'rows' | 'logs'> & Partial<Pick<Manifest, 'schema' | 'vault_id'>>,
  manifest: Manifest,
): void {
  for (const name of ['schema', 'vault_id'] as const) {
    if (found[name] === undefined || found[name] === manifest[name]) continue;
    throw new RestoreError(
      `The ${name} in manifest.json is ${manifest[name]}, and in the database it is ${found[name]}.`,
    );
  }
  for (const table of new Set([...Object.keys(manifest.rows), ...Object.keys(found.rows)])) {
    const [is, should] = [found.rows[table] ?? 0, manifest.rows[table] ?? 0];
    if (is === should) continue;
    throw new RestoreError(`The table ${table} has ${is} rows, and manifest.json says ${should}.`);
  }
  const known = new Map(manifest.logs.map((log) => [log.tenant_id, JSON.stringify(log)]));
  for (const log of found.logs) {
    if (known.get(log.tenant_id) !== JSON.stringify(log)) {
      throw new RestoreError(
        `The log of tenant ${log.tenant_id} does not end where manifest.json says.`,
      );
    }
    known.delete(log.tenant_id);
  }
  const [missing] = known.keys();
  if (missing !== undefined) throw new RestoreError(`The log of tenant ${missing} is missing.`);
}

/** What a restored database holds, for {@link verifyContent}. */
export async function restoredContent(
  store: ReadOnlyStore,
  manifest: Manifest,
): Promise<Pick<Manifest, 'rows' | 'logs'>> {
  const rows = await countRows(store, Object.keys(manifest.rows) as Table[]);
  return { rows, logs: await logHeads(store) };
}

function isInShares(root_key: Manifest['root_key'], { rootKey }: Pick<Config, 'rootKey'>): boolean {
  return rootKey.source === shamirName && root_key?.source === shamirName;
}

/** Reads the shares of the root key from standard input, where people hold it in shares. */
export async function sharesOf(
  terminal: Terminal,
  store: ReadOnlyStore,
  { root_key, ...config }: Pick<Config, 'rootKey'> & Pick<Manifest, 'root_key'>,
): Promise<SharedKeys | undefined> {
  return isInShares(root_key, config) ? await readSharedKeys(terminal, store) : undefined;
}

/**
 * @throws RestoreError where the configured root key is not the one that opens the vault, which names both sources if
 * they differ.
 */
export async function verifyRootKey(
  store: ReadOnlyStore,
  root_key: Manifest['root_key'],
  {
    rootKey,
    sharedKeys,
  }: Pick<Config, 'rootKey'> & { readonly sharedKeys: SharedKeys | undefined },
): Promise<void> {
  const tools = { clock: systemClock, random: pooledRandom(), createIfMissing: false };
  const settings = { ...rootKey, ...tools, sharedKeys };
  const isOfOther = root_key !== null && root_key.source !== rootKey.source;
  const advice = isOfOther ? adviceOn(root_key, rootKey.source) : '';
  if (isOfOther && !canUnwrap(root_key.source, settings)) throw new RestoreError(advice);
  let roots: RootKeys;
  try {
    roots = await openRootKeys(settings);
  } catch (error) {
    if (!isOfOther || !(error instanceof RootKeyError)) throw error;
    throw new RestoreError(`${error.message}. ${advice}`, { cause: error });
  }
  try {
    if ((await readVaultKeys({ ...tools, store, roots })) !== undefined) return;
    const needed =
      root_key === null
        ? 'another root key'
        : `key ${root_key.key_id} of the source ${root_key.source}`;
    const { origin } = roots.chosen;
    throw new RestoreError(
      `The root key (${origin}) does not open the vault, which was sealed under ${needed}. Provide that key.` +
        (isOfOther ? ` ${advice}` : ''),
    );
  } finally {
    roots.close();
  }
}

function adviceOn({ source, key_id }: NonNullable<Manifest['root_key']>, chosen: string): string {
  const how = source === shamirName ? 'give the shares when asked' : 'its variables, with that key';
  return (
    `The root key of the vault is key ${key_id} of the source ${source}, and STRONGROOM_ROOT_KEY_SOURCE is ` +
    `${chosen}. Set STRONGROOM_ROOT_KEY_SOURCE=${source} and ${how}. Nothing was changed.`
  );
}

/** Each hash of the whole log is computed again. */
export async function findingsIn(store: ReadOnlyStore): Promise<readonly string[]> {
  const verifier = new LogVerifier({ trustedKeys: [], kept: [] });
  for await (const record of readLogs(store, await tenantsWithLogs(store))) verifier.take(record);
  return verifier
    .finish()
    .findings.map(({ kind, tenant_id, message }) => `${kind}: ${message} (tenant ${tenant_id})`);
}

/** The manifest of a backup: what must be in its parts. It is written last, so a backup without it is not complete. */
import {
  closeSync,
  createReadStream,
  existsSync,
  fsyncSync,
  lstatSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { vaultKeysIn } from '../../access/keyrings/vault-key-rows.ts';
import { streamsOf } from '../../audit/checkpoints.ts';
import { tenantsWithLogs } from '../../audit/read.ts';
import { version as product } from '../../base/installation/manifest.ts';
import { isObject } from '../../base/json.ts';
import { createDigest } from '../../keys/digest.ts';
import type { ReadOnlyStore } from '../../store/open/read-only.ts';
import { countRows, tablesInFile } from '../../store/queries/count-rows.ts';
import { rootVaultKeys } from '../../store/queries/vault-keys.ts';
import { RestoreError } from '../../store/restore-error.ts';
import { syncFile } from '../../store/sqlite/backup.ts';
import { databaseFile } from '../../store/sqlite/database.ts';
import { readGivenFile } from '../terminal/given-text.ts';

export interface Manifest {
  readonly format: typeof format;
  /** The release that wrote the backup. */
  readonly product: string;
  /** The schema version of the database. */
  readonly schema: number;
  /** Of the vault. A backup of either engine restores to either. */
  readonly engine: 'sqlite' | 'postgres';
  /** The moment that the copy shows, in ISO 8601. */
  readonly created_at: string;
  /** Null for a vault whose database an earlier release wrote. */
  readonly vault_id: string | null;
  /** The root key that opens it. */
  readonly root_key: ManifestRootKey | null;
  readonly parts: readonly BackupPart[];
  /** By table. */
  readonly rows: Readonly<Record<string, number>>;
  readonly logs: readonly LogHead[];
}

interface ManifestRootKey {
  readonly source: string;
  readonly key_id: string;
  readonly version: number;
  readonly generation: number;
}

interface BackupPart {
  readonly name: string;
  readonly bytes: number;
  /** In hexadecimal. */
  readonly sha256: string;
}

/** How far a tenant's log had grown. */
export interface LogHead {
  readonly tenant_id: string;
  readonly streams: number;
  /** The newest entries of all streams, by their numbers: also those that retention has removed. */
  readonly entries: number;
  /** SHA-256, in hexadecimal, of the JSON array of `[stream_id, seq, hash]` of each newest entry, by stream. */
  readonly head: string;
}

const format = 'strongroom backup 1';
const manifestName = 'manifest.json';

export function manifestFile(directory: string): string {
  return join(directory, manifestName);
}

/** What a copy holds. */
export type Content = Pick<Manifest, 'schema' | 'vault_id' | 'root_key' | 'rows' | 'logs'>;

/** Reads it from the copy itself. No root key is needed, and nothing is proven. */
export async function contentOf(store: ReadOnlyStore, schema: number): Promise<Content> {
  return {
    schema,
    ...vaultKeyIn(await store.select(rootVaultKeys)),
    rows: await countRows(store, await tablesInFile(store)),
    logs: await logHeads(store),
  };
}

/** The vault, and the root key under which it is sealed. Nothing is opened. */
export function vaultKeyIn(
  rows: Parameters<typeof vaultKeysIn>[0],
): Pick<Manifest, 'vault_id' | 'root_key'> {
  const [newest] = vaultKeysIn(rows).current;
  const header = newest?.header;
  if (header === undefined) return { vault_id: null, root_key: null };
  const { vault, source, keyId, version, generation } = header;
  return { vault_id: vault, root_key: { source, key_id: keyId, version, generation } };
}

export async function logHeads(store: ReadOnlyStore): Promise<LogHead[]> {
  const logs: LogHead[] = [];
  for (const tenant_id of await tenantsWithLogs(store)) {
    const heads: unknown[] = [];
    let entries = 0;
    for await (const { stream_id, last_seq, last_hash } of streamsOf(store, tenant_id)) {
      heads.push([stream_id, last_seq, last_hash]);
      entries += last_seq;
    }
    const hash = createDigest();
    hash.update(JSON.stringify(heads));
    const head = hash.hex();
    logs.push({ tenant_id, streams: heads.length, entries, head });
  }
  return logs;
}

/** Writes the manifest of a copy that is on the disk. From then on the directory is a backup. */
export async function writeManifest(
  directory: string,
  written: Content & Pick<Manifest, 'engine' | 'created_at'>,
): Promise<Manifest> {
  const parts = [await partOf(databaseFile(directory))];
  const manifest: Manifest = { format, product, ...written, parts };
  const file = manifestFile(directory);
  const draft = `${file}.partial`;
  rmSync(draft, { force: true });
  const descriptor = openSync(draft, 'wx', 0o600);
  try {
    writeSync(descriptor, `${JSON.stringify(manifest, undefined, 1)}\n`);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  renameSync(draft, file);
  syncFile(directory);
  return manifest;
}

async function partOf(file: string): Promise<BackupPart> {
  return { name: basename(file), bytes: statSync(file).size, sha256: await digestOf(file) };
}

/** SHA-256 of a file, in hexadecimal. */
export async function digestOf(file: string): Promise<string> {
  const hash = createDigest();
  for await (const chunk of createReadStream(file, { highWaterMark: 1_048_576 }))
    hash.update(chunk);
  return hash.hex();
}

/**
 * Reading a pipe would never end, and a link leads to a file that its owner may change.
 * @throws RestoreError for anything but a file.
 */
export function requirePlainFile(file: string): void {
  if (lstatSync(file).isFile()) return;
  throw new RestoreError(
    `${file} is a link, a directory, or a special file, and not a part of a backup.`,
  );
}

/** A line of the log for each of a million tenants. */
const manifestBytesMax = 256 * 1024 * 1024;

/** @throws RestoreError, which names what is wrong. */
export function readManifest(directory: string): Manifest {
  const file = manifestFile(directory);
  if (!existsSync(directory)) throw new RestoreError(`There is no directory ${directory}.`);
  if (!existsSync(file)) {
    throw new RestoreError(
      `${file} is missing: the backup was interrupted, or a release without manifests made it.`,
    );
  }
  requirePlainFile(file);
  const { size } = statSync(file);
  if (size > manifestBytesMax) {
    throw new RestoreError(
      `${file} has ${size} bytes. A manifest has at most ${manifestBytesMax}.`,
    );
  }
  let parsed: unknown;
  try {
    parsed = JSON.parse(readGivenFile(file, { bytesMax: manifestBytesMax, mayBeEmpty: true }));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    parsed = undefined;
  }
  const found = isObject(parsed) ? parsed['format'] : undefined;
  if (typeof found === 'string' && found !== format && found.startsWith('strongroom backup ')) {
    throw new RestoreError(`${file} is of a later release. Use that release.`);
  }
  if (!isManifest(parsed)) {
    throw new RestoreError(`${file} is not a manifest: it was altered or damaged.`);
  }
  return parsed;
}

function isManifest(value: unknown): value is Manifest {
  if (!isObject(value) || value['format'] !== format) return false;
  const { product: release, schema, created_at, vault_id, parts, rows, logs } = value;
  return (
    isWord(release) &&
    isCount(schema) &&
    isTime(created_at) &&
    (vault_id === null || isWord(vault_id)) &&
    isRootKey(value['root_key']) &&
    Array.isArray(parts) &&
    parts.length === 1 &&
    parts.every(isPart) &&
    isObject(rows) &&
    Object.entries(rows).every(([table, count]) => isTableName(table) && isCount(count)) &&
    Array.isArray(logs) &&
    logs.every(isLogHead)
  );
}

/** What is printed, and written to logs, must not be able to say anything else there. */
const wordForm = /^[A-Za-z0-9:/_.+-]{1,512}$/;

function isWord(value: unknown): boolean {
  return typeof value === 'string' && wordForm.test(value);
}

const isTableName = (name: string) => /^[a-z_]{1,63}$/.test(name);

const isCount = (value: unknown) => Number.isSafeInteger(value);

function isLogHead(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { tenant_id, streams, entries, head } = value;
  return isWord(tenant_id) && isCount(streams) && isCount(entries) && isWord(head);
}

/** As `toISOString` writes it. */
function isTime(value: unknown): boolean {
  return (
    isWord(value) && /^[0-9T:.-]+Z$/.test(String(value)) && !Number.isNaN(Date.parse(String(value)))
  );
}

function isRootKey(value: unknown): boolean {
  if (value === null) return true;
  return isObject(value) && isWord(value['source']) && isWord(value['key_id']);
}

/** Of the one name that a part has, so that no manifest leads out of its directory. */
function isPart(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { name, bytes, sha256 } = value;
  return (
    name === basename(databaseFile('')) && isCount(bytes) && /^[0-9a-f]{64}$/.test(String(sha256))
  );
}

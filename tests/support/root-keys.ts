/** Root keys and what is sealed under them, as an attacker with the database and an old root key would try it. */
import { createSecretKey, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pooledRandom } from '../../src/base/random.ts';
import { AeadKey } from '../../src/keys/aead.ts';
import {
  keyVersionOf,
  openingKeys,
  openText,
  type VersionedKeys,
} from '../../src/keys/envelope.ts';
import { keyringBinding, rootKeys } from '../../src/keys/keyring.ts';
import { localRootKey } from '../../src/keys/root/local-key.ts';
import { readStored } from '../../src/keys/root/wrapped.ts';
import { shapes, type Table } from '../../src/store/tables.ts';
import type { Engine, Place } from './engines.ts';
import { testGrant } from './openings.ts';
import { storedRows } from './rows.ts';

export const keyFileOf = ({ dataDir }: Place): string => join(dataDir, 'root.key');

/** The keys in the file, the one that wraps first. */
export function keysInFile(place: Place): KeyObject[] {
  const lines = readFileSync(keyFileOf(place), 'utf8').trim().split('\n');
  return lines.map((line) => createSecretKey(line, 'base64'));
}

/**
 * The stored values that open with a root key: what it sealed directly, and keys that it wrapped. Ids of keys are not
 * trusted, each value is tried.
 */
export async function openedWith(
  engine: Engine,
  place: Place,
  root: KeyObject,
): Promise<readonly string[]> {
  const found: string[] = [];
  for (const { name, columns } of Object.values(shapes)) {
    for (const row of await storedRows(engine, place, name as Table)) {
      const values = row as unknown as Record<string, unknown>;
      for (const column of columns) {
        const bytes = bytesOf(values[column]);
        if (bytes && (await opens(root, bytes, values))) found.push(`${name}.${column}`);
      }
    }
  }
  return found;
}

/** Marks of deleted tenants are base64. */
function bytesOf(value: unknown): Uint8Array | undefined {
  if (value instanceof Uint8Array) return value;
  return typeof value === 'string' ? Buffer.from(value, 'base64') : undefined;
}

async function opens(
  root: KeyObject,
  bytes: Uint8Array,
  row: Record<string, unknown>,
): Promise<boolean> {
  const stored = readStored(bytes);
  if (stored === undefined) return false;
  const { header, sealed } = stored;
  const tenant = String(row['tenant_id'] ?? '');
  if (opensDirectly(root, sealed, row)) return true;
  if (header === undefined) return false;
  const local = localRootKey({
    source: 'file',
    origin: 'a test',
    random: pooledRandom(),
    load: () => [root],
  });
  const { keyId } = await local.current();
  try {
    await local.unwrap({ ...header, keyId }, { vault: header.vault, tenant });
    return true;
  } catch {
    // The id of the key is authenticated as well.
    return false;
  }
}

function opensDirectly(root: KeyObject, sealed: Uint8Array, row: Record<string, unknown>): boolean {
  const id = keyVersionOf(sealed);
  if (id === undefined) return false;
  const key = new AeadKey(root.export());
  const keys: VersionedKeys = { purpose: 'keyring', activeVersion: id, at: () => key };
  const tenant = String(row['tenant_id'] ?? '');
  const own = { tenant: '', id: String(row['name'] ?? ''), field: 'private_key' };
  return [keyringBinding(tenant as never), own].some((binding) => {
    try {
      openText(openingKeys(keys, testGrant), binding, sealed);
      return true;
    } catch {
      // It belongs elsewhere, or is of another key. Marks of deleted tenants are found by the id of their key.
      return id === rootKeys(root).activeVersion;
    }
  });
}

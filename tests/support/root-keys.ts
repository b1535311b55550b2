/** Root keys and what is sealed under them, as an attacker with the database and an old root key would try it. */
import assert from 'node:assert/strict';
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { tombstoneOf } from '../../src/access/keyrings/tombstone-row.ts';
import { pooledRandom } from '../../src/base/random.ts';
import { AeadKey } from '../../src/keys/aead.ts';
import {
  keyVersionOf,
  openingKeys,
  openText,
  sealText,
  type VersionedKeys,
} from '../../src/keys/envelope.ts';
import { keyringBinding, rootKeys, wrapKeyring } from '../../src/keys/keyring.ts';
import { localRootKey } from '../../src/keys/root/local-key.ts';
import { readStored } from '../../src/keys/root/wrapped.ts';
import { sealTombstone } from '../../src/keys/tombstone.ts';
import { proven } from '../../src/rules/proven-row.ts';
import type { Vault } from '../../src/runtime/open-vault.ts';
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

/** Rewrites a vault as a release before version 2 of the stored form wrote it: sealed by the root key itself. */
export async function toFormerForm(engine: Engine, place: Place, vault: Vault): Promise<void> {
  const random = pooledRandom();
  const [root] = keysInFile(place);
  assert.ok(root);
  const keys = rootKeys(root);
  const bytes = (value: Uint8Array) => {
    const hex = Buffer.from(value).toString('hex');
    return engine.name === 'sqlite' ? `x'${hex}'` : `decode('${hex}', 'hex')`;
  };
  for (const row of await storedRows(engine, place, 'tenants')) {
    const { tenant_id: tenant, proof: _proof, ...columns } = row;
    const where = `where tenant_id = '${tenant}'`;
    if (row.deleted_at !== null) {
      const mark = sealTombstone(keys, tombstoneOf(row), random);
      await engine.run(place, `update tenants set proof = '${mark}' ${where}`);
      continue;
    }
    const keyring = await vault.tenants.keyringOf(row);
    const wrapped = wrapKeyring(keys, tenant, keyring, random);
    const again = proven({ keyring }, 'tenants', {
      ...columns,
      tenant_id: tenant,
      keyring: wrapped,
    });
    const set = `keyring = ${bytes(wrapped)}, proof = '${again.proof}'`;
    await engine.run(place, `update tenants set ${set} ${where}`);
  }
  const own = { tenant: '', field: 'private_key' };
  for (const { name, private_key: sealed } of await storedRows(engine, place, 'vault_keys')) {
    const where = `where name = '${name}'`;
    if (name.startsWith('root.')) {
      const id = 'root_key.check';
      const check = bytes(sealText(keys, { ...own, id }, 'strongroom', random));
      await engine.run(
        place,
        `update vault_keys set name = '${id}', private_key = ${check} ${where}`,
      );
      continue;
    }
    const binding = { ...own, id: name };
    const text = await vault.vaultKeys.open({ job: 'sign deliveries', binding, sealed });
    const again = bytes(sealText(keys, binding, text, random));
    await engine.run(place, `update vault_keys set private_key = ${again} ${where}`);
  }
}

/** The name that such a release derived from the root key. */
export function formerNameOf(root: KeyObject): string {
  const digits = createHmac('sha256', root).update('strongroom name of the vault').digest('hex');
  return `strongroom-${digits.slice(0, 16)}`;
}

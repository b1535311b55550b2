/** Rotating the root key: every tenant and the vault itself get new keys, which the new root key wraps. */
import type { Clock } from '../../base/clock.ts';
import { integrityError, isIntegrityError } from '../../base/errors.ts';
import type { TenantId } from '../../base/ids.ts';
import type { Random } from '../../base/random.ts';
import { keyVersionOf } from '../../keys/envelope.ts';
import type { RootKey } from '../../keys/root/root-key.ts';
import { shamirName } from '../../keys/root/shamir.ts';
import { isLocal, type RootKeys } from '../../keys/root/sources.ts';
import { readStored } from '../../keys/root/wrapped.ts';
import { systemEntry } from '../../rules/log-entries.ts';
import { isProven, proven } from '../../rules/proven-row.ts';
import type { Tenants } from '../../rules/tenant.ts';
import { awayForGood } from '../../store/outgoing-copy.ts';
import { tenantsAfter } from '../../store/queries/tenants.ts';
import { allVaultKeys, rootVaultKeys } from '../../store/queries/vault-keys.ts';
import type { Store } from '../../store/store.ts';
import { type Unproven, unverifiedColumns } from '../../store/stored-row.ts';
import { reached } from './open-vault-keys.ts';
import {
  RotationError,
  type RotationLock,
  type RotationNote,
  storedRotation,
  takeRotation,
} from './rotation-lock.ts';
import {
  formerCheckName,
  isVaultKeyName,
  rotationName,
  vaultKeyBinding,
  vaultKeyBytes,
  vaultKeyName,
} from './vault-key-rows.ts';
import type { ProcessVaultKeys, VaultKey } from './vault-keys.ts';

export interface RotationTools {
  readonly store: Store;
  readonly tenants: Tenants;
  readonly vaultKeys: ProcessVaultKeys;
  readonly roots: RootKeys;
  readonly clock: Clock;
  readonly random: Random;
}

export interface RotationOptions {
  /** The source of the new key; that of the present one unless given. */
  readonly to?: string | undefined;
  /** Called with the number of tenants that were sealed again so far. */
  readonly onProgress?: ((done: number) => void) | undefined;
}

export interface RotationResult {
  readonly source: string;
  readonly keyId: string;
  readonly version: number;
  /** How many root keys this vault has had. */
  readonly generation: number;
  /** Tenants that were sealed again by this process. */
  readonly tenants: number;
  /** Keyrings that no key opens, because they were altered outside the vault. They stay as they are. */
  readonly unreadable: number;
}

const pageRows = 200;
const atOnceMax = 16;

/** Attempts for one tenant while others change its row. The next pass finds it again. */
const attemptsMax = 5;

/** Passes over all tenants until one finds nothing to do. */
const passesMax = 20;

/**
 * Every step can be repeated, so a rotation that was interrupted continues with the next call, by any process. It has
 * finished when nothing in the database opens with the key before.
 * @throws RotationError when it cannot begin, or cannot finish; RootKeyError when a source cannot be used. What was
 * sealed again by then stays, and the vault serves all tenants.
 */
export async function rotateRoot(
  tools: RotationTools,
  { to, onProgress = () => undefined }: RotationOptions = {},
): Promise<RotationResult> {
  const { roots, vaultKeys } = tools;
  const { current } = await vaultKeys.refresh();
  if (current === undefined) throw integrityError("the row of the vault's own key was altered");
  const wanted = await targetOf(tools, current, to);
  await requirePossible(tools, current, wanted);
  const lock = await takeRotation(tools, wanted);
  let outcome: 'finished' | 'unfinished' = 'unfinished';
  try {
    const { generation } = lock.note;
    const root = await switched(tools, lock);
    const { keyId, version } = await root.current();
    const count = { tenants: 0, unreadable: 0 };
    await sealAgain(tools, lock, {
      onTenant: () => {
        count.tenants += 1;
        onProgress(count.tenants);
      },
      onUnreadable: (found) => {
        count.unreadable = found;
      },
    });
    await removePrevious(tools);
    const inUse = (await vaultKeys.refresh()).current?.stored.header?.keyId;
    if (inUse !== undefined) await roots.renewal(root.source)?.end(inUse);
    // Old copies of the rows, which the engine may still have.
    await tools.store.scrub();
    outcome = 'finished';
    return { source: root.source, keyId, version, generation, ...count };
  } finally {
    await lock.release(outcome);
  }
}

/** Where a rotation leads that begins now, or that was interrupted. */
async function targetOf(tools: RotationTools, current: VaultKey, to: string | undefined) {
  const { roots } = tools;
  const stored = await storedRotation(tools);
  const generation = stored?.note.generation ?? current.stored.generation + 1;
  if (to !== undefined) {
    roots.requireConfigured(to);
    return { to, generation };
  }
  if (stored) return { to: stored.note.to, generation };
  const header = current.stored.header;
  const root = header && (await roots.unwrapping(header));
  if (root === undefined) throw new RotationError('the present root key is not configured');
  return { to: root.source, generation };
}

/** @throws RotationError before anything begins, where the source has the present key and cannot make another one. */
async function requirePossible(
  { roots }: RotationTools,
  { stored }: VaultKey,
  { to, generation }: Pick<RotationNote, 'to' | 'generation'>,
): Promise<void> {
  if (stored.generation >= generation || roots.renewal(to) !== undefined) return;
  await requireOther(await roots.named(to), stored.header?.keyId ?? '');
}

/**
 * The new root key, which wraps everything from now on. The key before it stays usable until the end.
 * @throws RotationError when the source has no other key than the present one.
 */
async function switched(tools: RotationTools, lock: RotationLock): Promise<RootKey> {
  const { store, roots, vaultKeys, clock, random } = tools;
  const { to, generation } = lock.note;
  for (;;) {
    const { current } = await vaultKeys.refresh();
    if (current === undefined) throw integrityError("the row of the vault's own key was altered");
    if (current.stored.generation >= generation) return roots.named(to);
    const inUse = current.stored.header?.keyId ?? '';
    await roots.renewal(to)?.begin(inUse);
    const root = await roots.named(to);
    await requireOther(root, inUse);
    const name = vaultKeyName(generation);
    const made = await reached(() => vaultKeys.wrapKey('', { root, generation }));
    const before = current.stored.generation;
    const context = { vault: vaultKeys.vault, tenant: '' };
    const header = {
      ...(await reached(() => root.wrap(current.key, context))),
      vault: vaultKeys.vault,
      generation: before,
    };
    const previous = vaultKeyName(before, true);
    const now = clock.now();
    const rowOf = (rowName: string, private_key: Uint8Array) => ({
      name: rowName,
      private_key,
      created_at: now,
    });
    lock.check();
    // Whoever seals with the key before conflicts from here on, because the row of that key is gone.
    await store.record({
      remove: { vault_keys: [{ name: vaultKeyName(before) }, ...(await strays(tools, before))] },
      insert: {
        vault_keys: [
          rowOf(name, vaultKeyBytes({ name, ...made }, random)),
          rowOf(previous, vaultKeyBytes({ name: previous, key: current.key, header }, random)),
        ],
      },
    });
  }
}

/** Rows of generations that the vault did not write, which would take the names of those to come. */
async function strays({ store }: RotationTools, generation: number) {
  const rows = await store.select(allVaultKeys);
  return rows.filter(({ name }) => isVaultKeyName(name) && name !== vaultKeyName(generation));
}

/** A service wraps with a version of its own; a local key must be another one. */
async function requireOther(root: RootKey, inUse: string): Promise<void> {
  const isShared = root.source === shamirName;
  if (!isLocal(root) && !isShared) return;
  const { keyId } = await root.current();
  if (keyId !== inUse) return;
  if (isShared) {
    throw new RotationError(
      'the new root key has no shares yet. Run "strongroom keys rotate root --to shamir" again',
    );
  }
  throw new RotationError(
    `the source ${root.source} still has the present root key, and only you can change that. Set another ` +
      'source beside it and name it with --to, for example --to file',
  );
}

interface SealingAgain {
  readonly onTenant: () => void;
  readonly onUnreadable: (count: number) => void;
}

/** @throws RotationError when rows of tenants were altered outside the vault, and still open with the key before. */
async function sealAgain(
  tools: RotationTools,
  lock: RotationLock,
  { onTenant, onUnreadable }: SealingAgain,
): Promise<void> {
  for (let pass = 0; pass < passesMax; pass++) {
    const { current } = await tools.vaultKeys.refresh();
    if (current === undefined) throw integrityError("the row of the vault's own key was altered");
    let changed = await sealOwnAgain(tools, current);
    const altered: Unproven<'tenants'>[] = [];
    const gone: Unproven<'tenants'>[] = [];
    let unreadable = 0;
    for await (const rows of pages(tools.store)) {
      lock.check();
      gone.push(
        ...rows.filter((row) => isGone(row, tools.vaultKeys.vault) && isBefore(row, current)),
      );
      const waiting = rows.filter((row) => !isElsewhere(row) && isBefore(row, current));
      for (let at = 0; at < waiting.length; at += atOnceMax) {
        const outcomes = await Promise.all(
          waiting.slice(at, at + atOnceMax).map((row) => sealTenantAgain(tools, row, current)),
        );
        for (const [index, outcome] of outcomes.entries()) {
          if (outcome === 'altered') altered.push(...waiting.slice(at + index, at + index + 1));
          else if (outcome === 'unreadable') unreadable += 1;
          else changed += 1;
          if (outcome === 'done') onTenant();
        }
      }
    }
    onUnreadable(unreadable);
    if (changed > 0) continue;
    if (gone.length > 0) {
      throw new RotationError(
        `${gone.length} tenants moved to other vaults, and their keys in this one still open with the root key ` +
          `before: ${namesOf(gone)}. Remove their rows with "strongroom tenant delete", then rotate again`,
      );
    }
    if (altered.length === 0) return;
    throw new RotationError(
      `the rows of ${altered.length} tenants were altered outside the vault and are not sealed again: ` +
        `${namesOf(altered)}. Repair or delete these tenants, then rotate again`,
    );
  }
  throw new RotationError('too many rows change at the moment. Rotate again later');
}

/** No server of this vault serves the tenant, and none writes its row. */
function isElsewhere(row: Unproven<'tenants'>): boolean {
  return unverifiedColumns(row).away_until === awayForGood;
}

/** It was served here: the keys of one that is being copied into this vault are those of another. */
function isGone(row: Unproven<'tenants'>, vault: string): boolean {
  return isElsewhere(row) && readStored(unverifiedColumns(row).keyring)?.header?.vault === vault;
}

const namedMax = 10;

function namesOf(rows: readonly Unproven<'tenants'>[]): string {
  const ids = rows.slice(0, namedMax).map(({ tenant_id }) => tenant_id);
  return ids.join(', ') + (rows.length > namedMax ? ', …' : '');
}

async function* pages(store: Store): AsyncGenerator<readonly Unproven<'tenants'>[]> {
  let after: TenantId | undefined;
  for (;;) {
    const rows = await store.select(tenantsAfter(after, pageRows));
    if (rows.length === 0) return;
    yield rows;
    after = rows.at(-1)?.tenant_id;
  }
}

/** Whether a part of the row is sealed under an earlier key than the current one. */
function isBefore(found: Unproven<'tenants'>, { keys, stored }: VaultKey): boolean {
  // Under which key it is sealed says nothing about who wrote the row.
  const row = unverifiedColumns(found);
  const isMarked = row.deleted_at !== null && row.keyring.length === 0;
  if (isMarked) return keyVersionOf(Buffer.from(row.proof, 'base64')) !== keys.activeVersion;
  return readStored(row.keyring)?.header?.generation !== stored.generation;
}

/**
 * `altered`: the keyring opens, and the rest of the row is not as the vault wrote it. `unreadable`: no key opens it.
 * `busy`: others changed it meanwhile.
 */
type TenantOutcome = 'done' | 'altered' | 'unreadable' | 'busy';

async function sealTenantAgain(
  tools: RotationTools,
  found: Unproven<'tenants'>,
  current: VaultKey,
): Promise<TenantOutcome> {
  const { store } = tools;
  let row: Unproven<'tenants'> | undefined = found;
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    if (row === undefined || !isBefore(row, current)) return 'busy';
    const change = await (isMarkedAsDeleted(row) ? deletedAgain : livingAgain)(tools, row);
    if (typeof change === 'string') return change;
    const { conflict } = await store.commit(change);
    if (conflict === undefined) return 'done';
    row = await store.get('tenants', { tenant_id: found.tenant_id });
  }
  return 'busy';
}

function isMarkedAsDeleted(row: Unproven<'tenants'>): boolean {
  return unverifiedColumns(row).deleted_at !== null;
}

async function livingAgain(
  { tenants, vaultKeys, clock }: RotationTools,
  found: Unproven<'tenants'>,
) {
  const { tenant_id: tenant } = found;
  try {
    // The row holds the keys that verify it. The root key verifies those.
    const keyring = await tenants.keyringOf(unverifiedColumns(found));
    if (!isProven({ keyring }, 'tenants', found)) return 'altered' as const;
    const row = unverifiedColumns(found);
    const { bytes } = await vaultKeys.sealKeyring({ tenant, keyring });
    const { proof: _proof, ...columns } = row;
    const version = row.version + 1;
    const again = proven({ keyring }, 'tenants', { ...columns, version, keyring: bytes });
    return { replace: { tenants: [again] }, entries: [entryOf(tenant, clock)] as const };
  } catch (error) {
    if (isIntegrityError(error)) return 'unreadable' as const;
    throw error;
  }
}

/** Its keys are destroyed, so nothing proves its entry in the log. */
async function deletedAgain({ tenants, clock }: RotationTools, found: Unproven<'tenants'>) {
  // Its mark, which is checked first, verifies the row.
  const row = unverifiedColumns(found);
  const { tenant_id: tenant, proof: _proof, ...columns } = row;
  if (!(await tenants.isTombstone(found))) {
    return row.keyring.length === 0 ? ('unreadable' as const) : ('altered' as const);
  }
  const version = row.version + 1;
  const { row: again, guard } = await tenants.tombstone({ ...columns, tenant_id: tenant, version });
  return {
    remove: { vault_keys: guard.remove },
    replace: { tenants: [again] },
    insert: { vault_keys: guard.insert },
    entries: [entryOf(tenant, clock)] as const,
    unexplained: true as const,
  };
}

function entryOf(tenant: TenantId, clock: Clock) {
  const at = clock.now();
  return systemEntry({ tenant, at, entity: 'tenant', id: tenant, operation: 'rotate' });
}

/** Secrets of the vault itself. @returns how many rows were changed. */
async function sealOwnAgain(
  { store, vaultKeys }: RotationTools,
  current: VaultKey,
): Promise<number> {
  let changed = 0;
  for (const row of await store.select(allVaultKeys)) {
    const { name, private_key: sealed } = row;
    if (isVaultKeyName(name) || name === rotationName) continue;
    if (name === formerCheckName) {
      await store.record({ remove: { vault_keys: [{ name }] } });
      changed += 1;
      continue;
    }
    if (keyVersionOf(sealed) === current.keys.activeVersion) continue;
    const text = await openOwn(vaultKeys, name, sealed);
    if (text === undefined) continue;
    const { bytes } = await vaultKeys.seal({ binding: vaultKeyBinding(name), text });
    await store.record({
      amend: { vault_keys: [{ name, private_key: bytes, was_private_key: sealed }] },
    });
    changed += 1;
  }
  return changed;
}

/** `undefined` for a row that was altered outside the vault: no key opens it, neither the new one nor the old. */
async function openOwn(
  vaultKeys: ProcessVaultKeys,
  name: string,
  sealed: Uint8Array,
): Promise<string | undefined> {
  try {
    return await vaultKeys.open({ job: 'rotate keys', binding: vaultKeyBinding(name), sealed });
  } catch (error) {
    if (isIntegrityError(error)) return undefined;
    throw error;
  }
}

async function removePrevious({ store }: RotationTools): Promise<void> {
  const rows = await store.select(rootVaultKeys);
  const previous = rows.filter(({ name }) => isVaultKeyName(name) && name.endsWith('.previous'));
  if (previous.length > 0) await store.record({ remove: { vault_keys: previous } });
}

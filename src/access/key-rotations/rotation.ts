/**
 * A rotation of a tenant's keys, step by step. Each step is one change of the tenant's row, whose version makes two
 * steps at once impossible, and of the row of the rotation.
 */
import { type Clock, day, type Instant, instantAfter } from '../../base/clock.ts';
import { formatTimestamp } from '../../base/dates.ts';
import { VaultError } from '../../base/errors.ts';
import type { TenantId } from '../../base/ids.ts';
import type { Random } from '../../base/random.ts';
import {
  type Keyring,
  type Purpose,
  type ResealingPurpose,
  resealingPurposes,
} from '../../keys/keyring.ts';
import { newNote } from '../../queue/notes.ts';
import type { Actor } from '../../rules/caller.ts';
import { detailed, entryOf, systemEntry } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';
import type { Tenants } from '../../rules/tenant.ts';
import type { Amendment } from '../../store/amendments.ts';
import type { Change } from '../../store/change.ts';
import type { RotatedPurpose, RotationKind } from '../../store/key-tables.ts';
import type { LogEntry } from '../../store/log-chain/entries.ts';
import { claimsOf, rotationsOf } from '../../store/queries/key-rotations.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import { newSigningPair, pairOf } from '../keyrings/signing-pairs.ts';
import type { KeyGuard, VaultKeys } from '../keyrings/vault-keys.ts';
import { tenantRowOf } from '../tenants/read.ts';
import { keyringStep } from './keyring-step.ts';
import { introduceLogKey } from './log-key.ts';
import { rotationWork } from './open-rotations.ts';
import { viewRotation } from './view.ts';

export type Rotation = Row<'key_rotations'>;

export interface KeyRotating {
  readonly store: Store;
  readonly tenants: Tenants;
  readonly vaultKeys: VaultKeys;
  readonly clock: Clock;
  readonly random: Random;
}

/**
 * The keys that are new together. Every write of a row is sealed under the active data key and has its digests under
 * the active keys, so that a new version of those begins with one of the data key.
 */
const renewed: Readonly<Record<RotationKind, readonly Purpose[]>> = {
  data: ['data', 'reply'],
  search: ['data', 'search'],
  fingerprint: ['data', 'fingerprint'],
  period: ['data'],
  webhooks: ['webhook'],
  log: ['audit'],
};

/** After the activation of other keys nothing is sealed again. */
function isResealing(purpose: RotationKind): purpose is ResealingPurpose {
  return resealingPurposes.some((known) => known === purpose);
}

/** New versions of a key in a day. The keyring is opened for every request, so a caller must not make it grow fast. */
export const versionsADayMax = 24;
/** Versions of a key that are not destroyed. Searches and deduplication look under each of them. */
export const livingVersionsMax = 100;

/**
 * Begins a rotation, which servers carry out. From the decision `conflict` while one of the purpose is under way, while
 * the webhook key before the active one signs deliveries as well, and when the keyring has too many versions.
 */
export function beginRotation(
  tools: Pick<KeyRotating, 'store' | 'tenants' | 'clock'>,
  actor: Actor,
  purpose: RotatedPurpose,
): Decide {
  return async () => {
    const id = actor.tenant.id;
    const keyring = await currentKeyring(tools, actor);
    // Its row may have been altered or removed outside the vault. Servers write it again.
    if (keyringStep(keyring)?.purpose === purpose) throw underWay(purpose);
    if (purpose === 'webhooks') requireNoOverlap(keyring, tools.clock.now());
    requireRoom(keyring, purpose, tools.clock.now());
    const fact = { entity: 'keyring', id, operation: 'rotate' } as const;
    const event = { keyring: { purpose } };
    const entry = entryOf(actor, tools.clock.now(), { ...fact, event });
    const begun = await rotationBegun(tools, { tenant: id, purpose, entry });
    if (begun === undefined) throw underWay(purpose);
    return { change: begun.change, reply: { status: 202, body: viewRotation(begun.row, keyring) } };
  };
}

/** The same by the vault itself, because a key has become too old. `undefined` while one is under way. */
export async function beginDueRotation(
  tools: Pick<KeyRotating, 'store' | 'clock'>,
  tenant: TenantId,
  purpose: RotationKind,
): Promise<Change | undefined> {
  const fact = { entity: 'keyring', id: tenant, operation: 'rotate' } as const;
  const event = { keyring: { purpose } };
  const entry = systemEntry({ tenant, at: tools.clock.now(), ...fact, event });
  return (await rotationBegun(tools, { tenant, purpose, entry }))?.change;
}

interface RequestedRotation {
  readonly tenant: TenantId;
  readonly purpose: RotationKind;
  readonly entry: LogEntry;
}

async function rotationBegun(
  { store }: Pick<KeyRotating, 'store'>,
  { tenant: tenant_id, purpose, entry }: RequestedRotation,
): Promise<{ readonly change: Change; readonly row: Rotation } | undefined> {
  // The entry is found by the time of the row: see `begun.ts`.
  const now = entry.created_at;
  const before = await store.get('key_rotations', { tenant_id, purpose });
  if (before && before.phase !== 'finished') return undefined;
  const begun = newRotation({ tenant_id, purpose, now });
  const note = await newNote(store, { tenant: tenant_id, work: rotationWork }, now);
  const row = { ...begun, revision: (before?.revision ?? 0) + 1 };
  const change: Change = {
    ...(before && { amend: { key_rotations: [amended(before, begun)] } }),
    insert: { due_work: [note], ...(!before && { key_rotations: [row] }) },
    entries: [detailed(entry, purpose)],
  };
  return { change, row };
}

interface NewRotation extends Pick<Rotation, 'tenant_id' | 'purpose'> {
  readonly now: Instant;
}

/** The row of a rotation that begins. */
export function newRotation({ tenant_id, purpose, now }: NewRotation): Omit<Rotation, 'revision'> {
  return {
    tenant_id,
    purpose,
    phase: 'waiting',
    phase_at: now,
    is_paused: 0,
    started_at: now,
    rows_done: 0,
    rows_total: null,
    unreadable: 0,
    holder: '',
    until: now,
    finished_at: null,
  };
}

/** A rotation by age is not limited: there are few of them. */
function requireRoom(keyring: Keyring, purpose: RotatedPurpose, now: Instant): void {
  for (const key of renewed[purpose]) {
    const versions = keyring.versions[key];
    const ofDay = versions.filter(
      ({ createdAt }) => createdAt !== undefined && now - createdAt < day,
    );
    if (ofDay.length >= versionsADayMax) {
      throw new VaultError('conflict', {
        public: `Keys of this tenant were rotated ${versionsADayMax} times within a day. Try again later.`,
      });
    }
    const living = versions.filter(({ state }) => state !== 'destroyed');
    if (living.length >= livingVersionsMax) {
      throw new VaultError('conflict', {
        public:
          `The tenant has ${livingVersionsMax} versions of a key that are not destroyed. Destroy those that have no ` +
          'rows.',
      });
    }
  }
}

/** Deliveries are signed with at most two keys. */
function requireNoOverlap(keyring: Keyring, now: Instant): void {
  const [before, active] = keyring.signingVersions(now);
  if (active === undefined || before?.signsUntil === undefined) return;
  const version = pairOf(before);
  throw new VaultError('conflict', {
    public:
      `Version ${version} of the webhooks key signs until ${formatTimestamp(before.signsUntil)}. Wait, or destroy ` +
      'that version to end the overlap now.',
  });
}

function underWay(purpose: RotatedPurpose): VaultError {
  return new VaultError('conflict', {
    public: `A rotation of the ${purpose} key is under way. Wait until it has finished.`,
  });
}

/** Pauses or resumes the rotations of the tenant that are under way. The reply has them as they are then. */
export function pauseRotations(
  tools: Pick<KeyRotating, 'store' | 'tenants' | 'clock'>,
  actor: Actor,
  isPaused: boolean,
): Decide {
  return async () => {
    const { store, clock } = tools;
    const rows = await store.select(rotationsOf(actor.tenant.id));
    const keyring = await currentKeyring(tools, actor);
    const is_paused = isPaused ? 1 : 0;
    // Also those that are as asked already: of two changes at once, the later one is then decided again.
    const unfinished = rows.filter((row) => row.phase !== 'finished');
    const operation = isPaused ? 'pause' : 'resume';
    const fact = { entity: 'keyring', id: actor.tenant.id, operation } as const;
    return {
      change: {
        amend: { key_rotations: unfinished.map((row) => amended(row, { is_paused })) },
        entries: [entryOf(actor, clock.now(), fact)],
      },
      reply: { status: 200, body: rows.map((row) => viewRotation({ ...row, is_paused }, keyring)) },
    };
  };
}

/** The latest rotation of each purpose. */
export function listRotations(
  tools: Pick<KeyRotating, 'store' | 'tenants' | 'clock'>,
  actor: Actor,
): Decide {
  return async () => {
    const { store, clock } = tools;
    const { id } = actor.tenant;
    const rows = await store.select(rotationsOf(id));
    const keyring = await currentKeyring(tools, actor);
    const fact = { entity: 'keyring', id, operation: 'list' } as const;
    return {
      change: { entries: [entryOf(actor, clock.now(), fact)] },
      reply: { status: 200, body: rows.map((row) => viewRotation(row, keyring)) },
    };
  };
}

/** As it is now, and not up to a second ago. */
async function currentKeyring(
  { tenants }: Pick<KeyRotating, 'tenants'>,
  { tenant }: Actor,
): Promise<Keyring> {
  return tenants.keyringOf(await tenantRowOf(tenants, tenant));
}

/** The rotation as it becomes, unless another process was faster. */
export function amended(row: Rotation, changes: Partial<Rotation>): Amendment<'key_rotations'> {
  return { ...row, ...changes, revision: row.revision + 1, was_revision: row.revision };
}

/** The new keys are stored, and no server writes under them. `undefined` when the tenant is gone. */
export function introduceKeys(tools: KeyRotating, rotation: Rotation): Promise<Change | undefined> {
  const { random } = tools;
  return stepOf(tools, rotation, {
    phase: 'announced',
    operation: 'introduce',
    next: async ({ id, keyring, now }) => {
      if (rotation.purpose === 'webhooks') return introduceSigningPair(tools, { keyring, now });
      if (rotation.purpose === 'log') return introduceLogKey(tools, { id, keyring, now });
      return {
        keyring: renewed[rotation.purpose].reduce(
          (next, purpose) => next.withVersion(purpose, { random, now }),
          keyring,
        ),
      };
    },
  });
}

/** For as long after a rotation the webhook key before signs deliveries as well. */
export const webhookOverlapMs = day;

/** Every server knows the new keys, and writes under them from now on. */
export function activateKeys(
  tools: Omit<KeyRotating, 'random' | 'vaultKeys'>,
  rotation: Rotation,
): Promise<Change | undefined> {
  const { purpose } = rotation;
  return stepOf(tools, rotation, {
    phase: isResealing(purpose) ? 'sealing' : 'finished',
    operation: 'activate',
    next: async ({ keyring, now }) => {
      const signsUntil = purpose === 'webhooks' ? instantAfter(now, webhookOverlapMs) : undefined;
      const active = renewed[purpose].reduce(
        (next, one) => next.withNewestActive(one, signsUntil),
        keyring,
      );
      return { keyring: isResealing(purpose) ? active.withResealing(purpose) : active };
    },
  });
}

/** Every server writes under the new fingerprint key: no value has to be claimed any more. */
export async function endOverlap(
  { tenants, clock }: Pick<KeyRotating, 'tenants' | 'clock'>,
  { tenant_id: tenant }: Rotation,
): Promise<Change | undefined> {
  const row = await ownRow(tenants, tenant);
  if (row === undefined) return undefined;
  const keyring = await tenants.keyringOf(row);
  const fact = { entity: 'keyring', id: tenant, operation: 'activate' } as const;
  return {
    ...(await tenants.rekeyed(row, keyring.withoutOverlap())),
    entries: [systemEntry({ tenant, at: clock.now(), ...fact })],
  };
}

/**
 * Nothing is under the earlier keys any more, except for rows that were altered outside the vault. `undefined` when the
 * tenant is gone.
 */
export async function finishRotation(
  { tenants, clock }: Pick<KeyRotating, 'tenants' | 'clock'>,
  rotation: Rotation,
  counts: Pick<Rotation, 'rows_done' | 'unreadable'>,
): Promise<Change | undefined> {
  const row = await ownRow(tenants, rotation.tenant_id);
  if (row === undefined) return undefined;
  const keyring = await tenants.keyringOf(row);
  const at = clock.now();
  const finished = {
    ...counts,
    phase: 'finished',
    phase_at: at,
    finished_at: at,
    until: at,
  } as const;
  return {
    ...(await tenants.rekeyed(row, keyring.withResealed(at))),
    amend: { key_rotations: [amended(rotation, finished)] },
    entries: [finishedEntry(rotation, at)],
  };
}

function finishedEntry({ tenant_id: tenant, purpose }: Rotation, at: Instant): LogEntry {
  const fact = { entity: 'keyring', id: tenant, operation: 'finish' } as const;
  return detailed(systemEntry({ tenant, at, ...fact, event: { keyring: { purpose } } }), purpose);
}

/** Removes claims that are over. @returns whether there may be more. */
export async function removeClaims(store: Store, tenant: TenantId): Promise<boolean> {
  const claims = await store.select(claimsOf(tenant, claimsAtOnce));
  if (claims.length === 0) return false;
  // With a conflict the token of a claim was deleted meanwhile.
  await store.record({ remove: { fingerprint_claims: claims } });
  return true;
}

const claimsAtOnce = 500;

/** The tenant as a step finds it. */
interface BeforeStep {
  readonly id: TenantId;
  readonly keyring: Keyring;
  readonly now: Instant;
}

/** What a step stores. */
interface AfterStep {
  readonly keyring: Keyring;
  readonly insert?: Pick<NonNullable<Change['insert']>, 'checkpoints' | 'vault_keys'>;
  readonly entries?: readonly LogEntry[];
  /** The key of the vault under which something is sealed that is inserted. */
  readonly guard?: KeyGuard;
}

interface RotationStep {
  readonly phase: Rotation['phase'];
  readonly operation: 'introduce' | 'activate';
  readonly next: (before: BeforeStep) => Promise<AfterStep>;
}

/** `undefined` also when a key of the vault was replaced meanwhile; the step is then taken again. */
async function stepOf(
  { tenants, clock }: Pick<KeyRotating, 'tenants' | 'clock'>,
  rotation: Rotation,
  { phase, operation, next }: RotationStep,
): Promise<Change | undefined> {
  const { tenant_id: tenant, purpose } = rotation;
  const row = await ownRow(tenants, tenant);
  if (row === undefined) return undefined;
  const now = clock.now();
  const before = { id: tenant, keyring: await tenants.keyringOf(row), now };
  const { keyring, insert, entries = [], guard } = await next(before);
  const rekeyed = await tenants.rekeyed(row, keyring);
  const guarding = rekeyed.insert?.vault_keys ?? [];
  if (guard && !guarding.some((one) => isSameKey(one, guard))) return undefined;
  const entry = systemEntry({ tenant, at: now, entity: 'keyring', id: tenant, operation });
  const isFinished = phase === 'finished';
  const finished = isFinished ? { finished_at: now, until: now } : {};
  return {
    ...rekeyed,
    insert: {
      ...rekeyed.insert,
      ...insert,
      vault_keys: [...guarding, ...(insert?.vault_keys ?? [])],
    },
    amend: { key_rotations: [amended(rotation, { phase, phase_at: now, ...finished })] },
    entries: [
      detailed(entry, purpose),
      ...entries,
      // A new data key for a month is no end of anything.
      ...(isFinished && purpose !== 'period' ? [finishedEntry(rotation, now)] : []),
    ],
  };
}

function isSameKey(one: KeyGuard, other: KeyGuard): boolean {
  return one.name === other.name && Buffer.compare(one.private_key, other.private_key) === 0;
}

async function introduceSigningPair(
  tools: KeyRotating,
  { keyring, now }: Omit<BeforeStep, 'id'>,
): Promise<AfterStep> {
  const { random } = tools;
  const { pair, row, guard } = await newSigningPair(tools);
  return {
    keyring: keyring.withVersion('webhook', { random, now, pair }),
    insert: { vault_keys: [row] },
    guard,
  };
}

/** `undefined` when the tenant is gone. @throws VaultError `integrity` when its row was altered. */
async function ownRow(tenants: Tenants, id: TenantId): Promise<Row<'tenants'> | undefined> {
  const tenant = await tenants.find(id);
  return tenant && tenantRowOf(tenants, tenant);
}

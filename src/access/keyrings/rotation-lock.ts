/** The row that says that a rotation of the root key is under way, and who is at work on it. */
import { setTimeout as pause } from 'node:timers/promises';
import { type Clock, type Instant, instantAfter, second } from '../../base/clock.ts';
import { isIntegrityError } from '../../base/errors.ts';
import { isObject } from '../../base/json.ts';
import type { Random } from '../../base/random.ts';
import type { Store } from '../../store/store.ts';
import { rotationName, vaultKeyBinding } from './vault-key-rows.ts';
import type { ProcessVaultKeys } from './vault-keys.ts';

/** What the row says. It holds no secret. */
export interface RotationNote {
  /** The source to which the rotation goes. */
  readonly to: string;
  /** The generation to which it leads. */
  readonly generation: number;
  /** The process that works on it, until this time unless it renews the row. */
  readonly holder: string;
  readonly until: Instant;
  /** base64 of where the rotation leads, sealed by the vault's own key. Absent in a note of an earlier release. */
  readonly proof?: string;
}

export interface StoredRotation {
  readonly note: RotationNote;
  readonly startedAt: Instant;
  readonly bytes: Uint8Array;
}

type Target = Pick<RotationNote, 'to' | 'generation'>;

/** A process that was killed is replaced after this time. */
const leaseMs = 4 * second;
const renewMs = second;

/** A second process looks this often whether the first one is alive. */
const lookMs = second / 4;

/** A rotation cannot begin, or cannot go on. */
export class RotationError extends Error {
  override readonly name = 'RotationError';
}

export interface RotationLock {
  readonly note: RotationNote;
  /** @throws RotationError when another process has taken the work over. */
  check(): void;
  /** Ends this process's part. The row stays, unless the rotation is finished. */
  release(outcome: 'finished' | 'unfinished'): Promise<void>;
}

export interface LockTools {
  readonly store: Pick<Store, 'get' | 'record'>;
  readonly vaultKeys: Pick<ProcessVaultKeys, 'refresh' | 'seal' | 'open'>;
  readonly clock: Clock;
  readonly random: Random;
}

/** The rotation that is under way, if the vault itself has begun it. */
export async function storedRotation(
  tools: Pick<LockTools, 'store' | 'vaultKeys'>,
): Promise<StoredRotation | undefined> {
  const row = await tools.store.get('vault_keys', { name: rotationName });
  const note = row && parseNote(row.private_key);
  if (row === undefined || note === undefined || !(await isOwn(tools, note))) return undefined;
  return { note, startedAt: row.created_at, bytes: row.private_key };
}

/**
 * An attacker who can write to the database must not be able to move the root key to another place, for example from a
 * key management service to a file. Once the vault's own key is of the generation to which the note leads, that key
 * proves where it has moved.
 */
async function isOwn({ vaultKeys }: Pick<LockTools, 'vaultKeys'>, note: RotationNote) {
  const { current } = await vaultKeys.refresh();
  if (current === undefined) return false;
  const { generation, header } = current.stored;
  if (generation === note.generation) return header?.source === note.to;
  if (note.generation !== generation + 1 || note.proof === undefined) return false;
  try {
    const sealed = Buffer.from(note.proof, 'base64');
    return (await vaultKeys.open({ job: 'rotate keys', binding, sealed })) === textOf(note);
  } catch (error) {
    if (isIntegrityError(error)) return false;
    throw error;
  }
}

const binding = vaultKeyBinding(rotationName);

function textOf({ to, generation }: Target): string {
  return JSON.stringify([to, generation]);
}

/** Whether no process works on it any more. */
export function isAbandoned({ note }: StoredRotation, clock: Clock): boolean {
  const left = note.until - clock.now();
  // A lease that is longer than any is of a clock that was set back.
  return left <= 0 || left > 2 * leaseMs;
}

/**
 * Begins a rotation, or continues one that was interrupted. A note that the vault did not write is replaced, and so is
 * one that leads to another source, as long as nothing is wrapped there: its source may never be reached.
 * @throws RotationError when another process is at work on it, or when it has led to another source.
 */
export async function takeRotation(tools: LockTools, wanted: Target): Promise<RotationLock> {
  const { store, clock, random } = tools;
  const holder = random(16).toString('hex');
  let seen: StoredRotation | undefined;
  for (;;) {
    const stored = await storedRotation(tools);
    const until = instantAfter(clock.now(), leaseMs);
    if (stored === undefined) {
      const foreign = await store.get('vault_keys', { name: rotationName });
      // Written meanwhile, or altered: the next look tells them apart.
      if (foreign && (await storedRotation(tools))) continue;
      const note = { ...wanted, holder, until, proof: await proofOf(tools, wanted) };
      const row = { name: rotationName, private_key: bytesOf(note), created_at: clock.now() };
      const isBegun = foreign
        ? await replace(store, foreign.private_key, note)
        : (await store.record({ insert: { vault_keys: [row] } })).conflict === undefined;
      if (isBegun) return held(tools, note);
      continue;
    }
    const isSame = stored.note.to === wanted.to;
    if (!isSame && !(isAbandoned(stored, clock) && (await isUnused(tools, stored)))) {
      throw toAnother(stored.note);
    }
    if (isAbandoned(stored, clock)) {
      const target = isSame ? stored.note : { ...wanted, proof: await proofOf(tools, wanted) };
      const note = { ...target, holder, until };
      if (await replace(store, stored.bytes, note)) return held(tools, note);
      continue;
    }
    if (seen && seen.note.until !== stored.note.until) throw underWay(stored.note);
    seen = stored;
    await pause(lookMs);
  }
}

async function proofOf({ vaultKeys }: LockTools, wanted: Target): Promise<string> {
  const { bytes } = await vaultKeys.seal({ binding, text: textOf(wanted) });
  return Buffer.from(bytes).toString('base64');
}

/** Whether the source to which the rotation leads wraps nothing yet. */
async function isUnused({ vaultKeys }: LockTools, { note }: StoredRotation): Promise<boolean> {
  const { current } = await vaultKeys.refresh();
  return current !== undefined && current.stored.generation < note.generation;
}

function held({ store, clock }: LockTools, first: RotationNote): RotationLock {
  let note = first;
  let lost: RotationError | undefined;
  const ending = new AbortController();
  const renewing = renew();

  async function renew(): Promise<void> {
    for (;;) {
      await pause(renewMs, undefined, { signal: ending.signal }).catch(() => undefined);
      if (ending.signal.aborted) return;
      const next = { ...note, until: instantAfter(clock.now(), leaseMs) };
      try {
        if (await replace(store, bytesOf(note), next)) note = next;
        else lost = underWay(note);
      } catch {
        // Without its database the work stops by itself; another process may take it over.
      }
      if (lost) return;
    }
  }

  return {
    note,
    check: () => {
      if (lost) throw lost;
    },
    release: async (outcome) => {
      ending.abort();
      await renewing;
      if (lost) return;
      if (outcome === 'finished') {
        await store.record({ remove: { vault_keys: [{ name: rotationName }] } });
      } else {
        await replace(store, bytesOf(note), { ...note, until: clock.now() });
      }
    },
  };
}

async function replace(
  store: LockTools['store'],
  was: Uint8Array,
  note: RotationNote,
): Promise<boolean> {
  const amendment = { name: rotationName, private_key: bytesOf(note), was_private_key: was };
  const { conflict } = await store.record({ amend: { vault_keys: [amendment] } });
  return conflict === undefined;
}

function underWay({ to }: RotationNote): RotationError {
  return new RotationError(
    `another process is rotating the root key (to the source ${to}). Wait until it has finished`,
  );
}

function toAnother({ to }: RotationNote): RotationError {
  return new RotationError(
    `a rotation of the root key to the source ${to} has begun and is not finished. Finish it with ` +
      `"strongroom keys rotate root --to ${to}"`,
  );
}

function bytesOf({ to, generation, holder, until, proof }: RotationNote): Uint8Array {
  return Buffer.from(JSON.stringify({ to, generation, holder, until, proof }));
}

function parseNote(bytes: Uint8Array): RotationNote | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch {
    return undefined;
  }
  if (!isObject(parsed)) return undefined;
  const { to, generation, holder, until, proof } = parsed;
  const isForm =
    typeof to === 'string' &&
    typeof holder === 'string' &&
    Number.isSafeInteger(generation) &&
    Number.isSafeInteger(until) &&
    (proof === undefined || typeof proof === 'string');
  return isForm ? (parsed as unknown as RotationNote) : undefined;
}

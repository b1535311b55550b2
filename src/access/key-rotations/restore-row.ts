/** The row of a rotation that the keyring says is under way, written again after an attacker altered or removed it. */
import { minute } from '../../base/clock.ts';
import type { TenantId } from '../../base/ids.ts';
import { newNote, notesOf } from '../../queue/notes.ts';
import { rotationsOf } from '../../store/queries/key-rotations.ts';
import type { Store } from '../../store/store.ts';
import { tenantRowOf } from '../tenants/read.ts';
import { keyringStep } from './keyring-step.ts';
import { rotationWork } from './open-rotations.ts';
import { type KeyRotating, newRotation } from './rotation.ts';

type RowRestoring = Pick<KeyRotating, 'store' | 'tenants' | 'clock'>;

/** Another server, whose clock may be ahead, may have written a note a moment ago. */
const clockSkewMs = 5 * minute;

/** @returns whether a row was written, or the note of one, so that servers go on with the rotation. */
export async function restoreRotation(tools: RowRestoring, id: TenantId): Promise<boolean> {
  const { store, clock } = tools;
  if ((await currentStep(tools, id)) === undefined) return false;
  const rows = await store.select(rotationsOf(id));
  // A rotation finishes in one commit of its row and of the keyring. So what is read after the row tells.
  const step = await currentStep(tools, id);
  if (step === undefined) return false;
  const now = clock.now();
  const { purpose, phase } = step;
  const before = rows.find((row) => row.purpose === purpose);
  const isOpen = before !== undefined && before.phase !== 'finished';
  const notes = await notesOf(store, { tenant: id, work: rotationWork });
  if (isOpen && notes.some(({ due_at }) => due_at - now <= clockSkewMs)) return false;
  const note = await newNote(store, { tenant: id, work: rotationWork }, now);
  const insert = { due_work: [note] };
  if (isOpen) return isRecorded(store, { insert });
  const revision = (before?.revision ?? 0) + 1;
  const row = { ...newRotation({ tenant_id: id, purpose, now }), phase, revision };
  const inserted = { ...insert, key_rotations: [row] };
  // The row is there and cannot be read if its numbers are no numbers of the vault.
  const key = { tenant_id: id, purpose };
  return (
    (await isRecorded(store, { insert: inserted })) ||
    (await isRecorded(store, { remove: { key_rotations: [key] }, insert: inserted }))
  );
}

async function isRecorded(
  store: Pick<Store, 'record'>,
  work: Parameters<Store['record']>[0],
): Promise<boolean> {
  return (await store.record(work)).conflict === undefined;
}

async function currentStep({ tenants }: RowRestoring, id: TenantId) {
  const tenant = await tenants.find(id);
  if (tenant === undefined) return undefined;
  return keyringStep(await tenants.keyringOf(await tenantRowOf(tenants, tenant)));
}

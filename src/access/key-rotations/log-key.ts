/** A new key that signs the log. The key before introduces it, in a checkpoint. */
import { checkpointEntry, draftCheckpoint, newestCheckpoint } from '../../audit/checkpoints.ts';
import { publicKeyOf } from '../../audit/statements.ts';
import type { Instant } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import type { Keyring } from '../../keys/keyring.ts';
import type { TenantKeys } from '../../rules/tenant.ts';
import type { LogEntry } from '../../store/log-chain/entries.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';

export interface IntroducedLogKey {
  readonly keyring: Keyring;
  readonly insert: { readonly checkpoints: readonly Row<'checkpoints'>[] };
  readonly entries: readonly LogEntry[];
}

/** The keyring with the new key, and the checkpoint. To store them conflicts if another checkpoint came between. */
export async function introduceLogKey(
  { store, random }: { readonly store: Pick<Store, 'select'>; readonly random: Random },
  { id, keyring, now }: TenantKeys & { readonly now: Instant },
): Promise<IntroducedLogKey> {
  const newest = await newestCheckpoint(store, id);
  const introducedBy = (newest?.seq ?? 0) + 1;
  const next = keyring.withVersion('audit', { random, now, introducedBy });
  const [introduces = ''] = next.versions.audit.slice(-1).flatMap((one) => publicKeyOf(one) ?? []);
  const tenant = { id, keyring };
  const row = await draftCheckpoint(store, { tenant, newest, now, introduces });
  return { keyring: next, insert: { checkpoints: [row] }, entries: [checkpointEntry(row)] };
}

/** What remains of a deleted tenant, marked under the vault's own key: the keys that would prove it are destroyed. */
import { isIntegrityError } from '../base/errors.ts';
import type { TenantId } from '../base/ids.ts';
import type { Random } from '../base/random.ts';
import { type Binding, sealsText, sealText, type VersionedKeys } from './envelope.ts';

const text = 'deleted';

/** The columns of a tenant's row, and whose row it is. */
export interface TombstoneRow {
  readonly tenant: TenantId;
  readonly row: string;
}

/** base64 of a sealed word that is bound to the row. */
export function sealTombstone(
  keys: VersionedKeys,
  tombstone: TombstoneRow,
  random: Random,
): string {
  const sealed = sealText(keys, bindingOf(tombstone), text, random);
  return Buffer.from(sealed).toString('base64');
}

/** False when the row was marked as deleted, or changed since, outside the vault. */
export function isTombstone(keys: VersionedKeys, tombstone: TombstoneRow, mark: string): boolean {
  try {
    const sealed = Buffer.from(mark, 'base64');
    return sealsText(keys, bindingOf(tombstone), { sealed, text });
  } catch (error) {
    if (isIntegrityError(error)) return false;
    throw error;
  }
}

function bindingOf({ tenant, row }: TombstoneRow): Binding {
  return { tenant, id: tenant, field: 'deleted', row };
}

/** Using values that a client encrypted: opened for a caller, with a log entry for success and for refusal. */

import type { Clock, Instant } from '../../base/clock.ts';
import { VaultError } from '../../base/errors.ts';
import type { Caller } from '../../rules/caller.ts';
import { denialOf, entryOf, failureOf } from '../../rules/log-entries.ts';
import { membersMaxOf } from '../../rules/members.ts';
import { type OpeningBasis, openerFor } from '../../rules/openings.ts';
import type { Refused } from '../../rules/operation.ts';
import type { LogEntry } from '../../store/log-chain/entries.ts';
import {
  type EncryptedValue,
  keyNamedBy,
  type OpenEncrypted,
  type OpenedValue,
} from './open-encrypted.ts';

export interface EncryptedTools {
  readonly clock: Clock;
  readonly openEncrypted: OpenEncrypted;
}

/** The value to open, and the reason why the caller may. */
export interface EncryptedUse extends EncryptedValue {
  readonly basis: OpeningBasis;
}

/** The value, or the refusal with the entry that names the key. Throws if a row was altered in the database. */
export async function useEncrypted(
  { clock, openEncrypted }: EncryptedTools,
  caller: Caller,
  { basis, ...value }: EncryptedUse,
): Promise<OpenedValue | Refused> {
  const { grant } = openerFor(caller, basis);
  try {
    const opener = { tenant: caller.tenant, grant, membersMax: membersMaxOf(caller) };
    return await openEncrypted(opener, value);
  } catch (error) {
    if (!(error instanceof VaultError) || error.code !== 'validation_failed') throw error;
    const attempt = { entity: 'key', id: keyNamedBy(value.jwe) ?? '*', operation: 'use' };
    return { change: { entries: [failureOf(caller, clock.now(), attempt)] }, refusal: error };
  }
}

/** Refuses a caller without the permission before the value is opened. */
export function denyEncrypted(
  { clock }: Pick<EncryptedTools, 'clock'>,
  caller: Caller,
  { jwe, refusal }: { readonly jwe: string; readonly refusal: VaultError },
): Refused {
  const denial = { entity: 'key', id: keyNamedBy(jwe) ?? '*', operation: 'use' };
  return { change: { entries: [denialOf(caller, clock.now(), denial)] }, refusal };
}

/** Records that a token or a token intent was made from a value that a client encrypted. */
export function creationEntry(caller: Caller, now: Instant, { key: id }: OpenedValue): LogEntry {
  return entryOf(caller, now, { entity: 'key', id, operation: 'use create' });
}

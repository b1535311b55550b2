/** A creation that was done before: its id is taken by a token equal to the requested one. */

import { isDeepStrictEqual } from 'node:util';
import type { Instant } from '../base/clock.ts';
import type { Json } from '../base/json.ts';
import { openerFor } from '../rules/openings.ts';
import type { Store } from '../store/store.ts';
import { withoutCode } from './contents/card-code.ts';
import { type Contents, contentsOfRow, hasExpired } from './contents/contents.ts';
import { readGrant } from './contents/disclosure.ts';
import { readEntry } from './contents/read-entry.ts';
import { sealedData } from './contents/sealed-row.ts';
import { viewOverTime } from './contents/view.ts';
import type { Creation, TokenOutcome } from './create-one.ts';
import type { PreparedToken } from './prepare.ts';
import type { TakenId } from './taken-ids.ts';

/** The token that has the requested id; a random id has none. */
export function holderOf(
  { pending, takenIds, now }: Creation,
  { ids }: PreparedToken,
): TakenId | undefined {
  const { value, drawn } = ids.next(false);
  if (drawn) return undefined;
  const holder = pending.get(value)?.row ?? takenIds.get(value);
  return holder && !hasExpired(holder, now) ? holder : undefined;
}

/** A creation by lines that are decided one by one. */
export interface RepeatableCreation extends Creation {
  readonly store: Store;
}

/**
 * The token, if the same application created it, it still matches the whole request, and it may be
 * revealed to the caller; otherwise `undefined`. To other callers the response would confirm its value.
 */
export async function repeatCreation(
  { store, caller, now, evaluation, onMaskFailure, pending }: RepeatableCreation,
  { contents }: PreparedToken,
  { tenant_id, token_id: id, container, created_by }: TakenId,
): Promise<TokenOutcome | undefined> {
  const { policy } = caller;
  if (created_by !== caller.application) return undefined;
  const grant = readGrant(policy, { id, container });
  if (grant?.transform !== 'reveal') return undefined;
  const found = pending.get(id)?.row ?? (await store.get('tokens', { tenant_id, token_id: id }));
  // One that was moved or replaced since is another.
  if (found?.container !== container || found.created_by !== created_by) return undefined;
  const sealedAt = (at: Instant) => sealedData(openerFor(caller, grant), found, at);
  const { row, data } = sealedAt(now).open();
  if (!isSame(contents, contentsOfRow(row, data.reveal()), now)) return undefined;
  const extras = { deduplicated: true };
  const disclosure = { shown: 'revealed', through: 'create' } as const;
  return {
    created: {
      row,
      grant,
      viewAt: viewOverTime({ grant, evaluation, onMaskFailure, extras }, sealedAt),
    },
    entry: readEntry(caller, now, { row, disclosure }),
  };
}

/** A card code may be gone from the token by now, and is sent again all the same. */
function isSame(requested: Contents, stored: Contents, now: Instant): boolean {
  const { data, codeExpiresAt: _requested, expiry, ...definition } = requested;
  const { data: storedData, codeExpiresAt, expiry: storedExpiry, ...storedDefinition } = stored;
  const hasCode = codeExpiresAt !== undefined && codeExpiresAt > now;
  const expected = hasCode ? data : withoutCode(requested.type, data);
  return (
    isDeepStrictEqual(definition, storedDefinition) &&
    expiry?.at === storedExpiry?.at &&
    isDeepStrictEqual(JSON.parse(JSON.stringify(expected)) as Json, storedData)
  );
}

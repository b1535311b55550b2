/** Updating a token by JSON merge patch. */

import type { Instant } from '../base/clock.ts';
import { createPause } from '../base/pauses.ts';
import { newWriteEvaluation } from '../expressions/evaluation/evaluation.ts';
import type { Caller } from '../rules/caller.ts';
import { tagOf } from '../rules/entity-tag.ts';
import { entryOf } from '../rules/log-entries.ts';
import { openerFor } from '../rules/openings.ts';
import type { Decide } from '../rules/operation.ts';
import { decide } from '../rules/policy.ts';
import { deny, refuse } from '../rules/refusal.ts';
import type { Store } from '../store/store.ts';
import type { Row } from '../store/tables.ts';
import { contentsOfRow, hasExpired, patchContents, type TokenPatch } from './contents/contents.ts';
import { hasCurrentDigest } from './contents/digest-versions.ts';
import {
  readGrant,
  shownByPatch,
  testsValue,
  undisclosedMove,
  undisclosedPatch,
} from './contents/disclosure.ts';
import {
  broughtData,
  deriveRow,
  type Evaluated,
  hasMask,
  openData,
  sealRow,
} from './contents/sealed-row.ts';
import { searchTerms } from './contents/search-terms.ts';
import { shownAs, viewOverTime, viewUnread, withoutContents } from './contents/view.ts';
import type { TokenWriting } from './create.ts';
import { currentFingerprint, guessOf, learned } from './guesses/guesses.ts';
import { deduplicatesTokens, fingerprintsTokens } from './prepare.ts';
import { liveToken, placesWithFingerprints, replacementOf } from './queries.ts';
import { changedToken } from './reply-expiry.ts';

export interface TokenUpdate {
  readonly id: string;
  readonly patch: TokenPatch;
}

/** From the decision `validation_failed` or `not_found`. */
export function updateToken(
  tools: TokenWriting,
  caller: Caller,
  { id, patch }: TokenUpdate,
): Decide {
  const { store, clock, random, onMaskFailure } = tools;
  const { tenant } = caller;
  return async () => {
    const now = clock.now();
    const evaluation = newWriteEvaluation();
    const pause = createPause();
    const found = await liveToken(store, { tenant: tenant.id, id, now });
    const subject = { id: found.token_id, container: found.container };
    const denial = { entity: 'token', ...subject, permission: 'token:update' } as const;
    const attempt = { entity: 'token', ...subject, operation: 'update' } as const;
    const updating = decide(caller.policy, 'token:update', subject);
    if (!updating) return refuse(caller, now, denial);
    const undisclosed = undisclosedPatch(caller.policy, subject, { patch, type: found.type });
    if (undisclosed) return deny(caller, now, attempt, undisclosed);
    const isTested = testsValue(caller.policy, subject, { patch, type: found.type });
    const opened = openData(openerFor(caller, updating, isTested), found, now);
    const { row } = opened;
    const before = opened.data.reveal();
    const contents = patchContents(contentsOfRow(row, before), patch, clock);
    // Moving a token needs the permission where it is and where it goes.
    const moved = { ...subject, container: contents.container };
    if (!decide(caller.policy, 'token:update', moved)) return refuse(caller, now, denial);
    const exposed = undisclosedMove(caller, subject, moved);
    if (exposed) return deny(caller, now, attempt, exposed);
    await pause();
    const after = { row, patch, contents, evaluation, now };
    const { fingerprint, others, isSame } = await fingerprintAfter(store, caller, after);
    const { data } = contents;
    const updated = sealRow(
      { tenant, data, random },
      {
        ...row,
        ...deriveRow({ tenant, contents, fingerprint, now }),
        version: row.version + 1,
        deduplicated: isSame ? row.deduplicated : 0,
        modified_by: caller.application,
        modified_at: now,
      },
    );
    const terms = searchTerms(tenant, updated, { contents, evaluation });
    const grant = readGrant(caller.policy, moved);
    const viewOf = grant
      ? viewOverTime({ grant, evaluation, onMaskFailure }, (at) => broughtData(updated, data, at))
      : () => viewUnread(updated);
    const became = deduplicatesTokens(caller, patch.deduplicate_token) && !isSame;
    const equals = { updated, others, now };
    const hidden = became && (await equalsUnreadable(store, caller, equals));
    const claims =
      row.deduplicated === 1 && tenant.keyring.overlappedSecret('fingerprint') !== undefined;
    await pause();
    const seen = grant && !hidden ? shownAs(grant, { hasMask: hasMask(updated) }) : undefined;
    const shown = seen && shownByPatch(seen, { patch, type: row.type });
    const disclosure = shown && ({ shown, through: 'update' } as const);
    const viewAt = (at: Instant) => (hidden ? withoutContents(viewOf(at)) : viewOf(at));
    return {
      change: {
        ...(await replacementOf(store, { row, updated, terms, isClaimed: claims && !isSame })),
        entries: [entryOf(caller, now, { ...attempt, disclosure })],
      },
      reply: {
        status: 200,
        etag: tagOf('tokens', updated),
        body: viewAt(now),
        ...changedToken({ row: updated, grant: hidden ? undefined : grant, viewAt }),
      },
      before: () => tagOf('tokens', row),
    };
  };
}

interface PatchedToken extends Evaluated {
  readonly row: Row<'tokens'>;
  readonly patch: TokenPatch;
  readonly now: Instant;
}

interface PatchedFingerprint {
  /** Under the active key; null also where it is withheld. */
  readonly fingerprint: string | null;
  /** The same under the other keys that live. */
  readonly others: readonly string[];
  /** Whether it is of the same value as before. */
  readonly isSame: boolean;
}

/** The value that is fingerprinted stays unless the patch touches its source. */
async function fingerprintAfter(
  store: Store,
  caller: Caller,
  patched: PatchedToken,
): Promise<PatchedFingerprint> {
  const { row, patch, contents, now } = patched;
  const { data, metadata, fingerprint_expression: expression } = patch;
  const own = contents.fingerprintExpression?.includes('metadata') === true;
  const touched = data !== undefined || expression !== undefined || (own && metadata !== undefined);
  if (row.fingerprint !== null && !touched) {
    const isCurrent = hasCurrentDigest(caller.tenant, 'fingerprint', row);
    const fingerprint = isCurrent ? row.fingerprint : currentFingerprint(caller.tenant, patched);
    return { fingerprint, others: [], isSame: true };
  }
  const asked = expression ?? contents.fingerprintExpression;
  if (row.fingerprint === null && !fingerprintsTokens(caller, asked)) {
    return { fingerprint: null, others: [], isSame: true };
  }
  const guess = guessOf(caller, patched, { request: patch });
  const fingerprint = await learned({ store, now }, caller, guess);
  const { others } = guess;
  const isSame = [fingerprint, ...(fingerprint === null ? [] : others)].includes(row.fingerprint);
  return { fingerprint, others, isSame };
}

interface UpdatedFingerprint extends Pick<PatchedFingerprint, 'others'> {
  readonly updated: Row<'tokens'>;
  readonly now: Instant;
}

/** True when another token holds the same value and the caller may not read it. */
async function equalsUnreadable(
  store: Store,
  caller: Caller,
  { updated, others, now }: UpdatedFingerprint,
): Promise<boolean> {
  if (updated.fingerprint === null) return false;
  const fingerprints = [updated.fingerprint, ...others];
  const equals = await placesWithFingerprints(store, updated.tenant_id, fingerprints);
  return equals.some(
    (row) =>
      row.token_id !== updated.token_id &&
      !hasExpired(row, now) &&
      !decide(caller.policy, 'token:read', { id: row.token_id, container: row.container }),
  );
}

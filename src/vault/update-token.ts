/** Updating a token by JSON merge patch. */
import type { Instant } from '../lib/clock.ts';
import type { Store } from '../store/store.ts';
import type { Row } from '../store/tables.ts';
import { decide } from './access.ts';
import { entryOf } from './audit.ts';
import type { Caller } from './caller.ts';
import { deduplicatesTokens, fingerprintsTokens, type TokenWriting } from './create-token.ts';
import { type Decide, refuse } from './perform.ts';
import { contentsOfRow, hasExpired, patchContents, type TokenPatch } from './token-contents.ts';
import { liveToken, termsOf, tokensWithFingerprint } from './token-queries.ts';
import { deriveRow, fingerprintOfContents, openData, searchTerms } from './token-row.ts';
import { viewToken, withoutContents } from './view.ts';

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
    const row = await liveToken(store, { tenant: tenant.id, id, now });
    const denial = { entity: 'token', id: row.token_id, permission: 'token:update' } as const;
    const subject = { id: row.token_id, container: row.container };
    const grant = decide(caller.policy, 'token:update', subject);
    if (!grant) return refuse(caller, now, denial);
    const contents = patchContents(
      contentsOfRow(row, openData(tenant, row).reveal()),
      patch,
      clock,
    );
    // Moving a token needs the permission where it lies and where it goes.
    if (!decide(caller.policy, 'token:update', { ...subject, container: contents.container })) {
      return refuse(caller, now, denial);
    }
    const fingerprint =
      row.fingerprint !== null || fingerprintsTokens(caller, contents)
        ? fingerprintOfContents(tenant, contents)
        : null;
    const updated: Row<'tokens'> = {
      ...row,
      ...deriveRow({ tenant, id: row.token_id, contents, fingerprint, random }),
      version: row.version + 1,
      deduplicated: fingerprint === row.fingerprint ? row.deduplicated : 0,
      modified_by: caller.application,
      modified_at: now,
    };
    const [oldTerms, newTerms] = [
      await termsOf(store, row),
      searchTerms(tenant, row.token_id, contents),
    ];
    const body = viewToken({
      row: updated,
      open: () => openData(tenant, updated),
      grant,
      onMaskFailure,
    });
    const became =
      deduplicatesTokens(caller, patch.deduplicate_token) && fingerprint !== row.fingerprint;
    const hidden = became && (await equalsUnreadable(store, caller, updated, now));
    return {
      change: {
        remove: { search_terms: without(oldTerms, newTerms) },
        replace: { tokens: [updated] },
        insert: { search_terms: without(newTerms, oldTerms) },
        entries: [entryOf(caller, now, { entity: 'token', id: row.token_id, operation: 'update' })],
      },
      reply: { status: 200, body: hidden ? withoutContents(body) : body },
    };
  };
}

/** True when another token holds the same value and the caller may not read it. */
async function equalsUnreadable(
  store: Store,
  caller: Caller,
  updated: Row<'tokens'>,
  now: Instant,
): Promise<boolean> {
  if (updated.fingerprint === null) return false;
  const equals = await tokensWithFingerprint(store, updated.tenant_id, updated.fingerprint);
  return equals.some(
    (row) =>
      row.token_id !== updated.token_id &&
      !hasExpired(row, now) &&
      !decide(caller.policy, 'token:read', { id: row.token_id, container: row.container }),
  );
}

function without(
  terms: readonly Row<'search_terms'>[],
  others: readonly Row<'search_terms'>[],
): Row<'search_terms'>[] {
  return terms.filter(({ term }) => others.every((other) => other.term !== term));
}

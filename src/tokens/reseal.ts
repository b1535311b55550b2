/**
 * Tokens and token intents sealed again under the active keys, with their fingerprints and search terms where those
 * have new keys.
 */

import assert from 'node:assert/strict';
import type { TokenId } from '../base/ids.ts';
import type { Json } from '../base/json.ts';
import { createPause } from '../base/pauses.ts';
import { newWriteEvaluation } from '../expressions/evaluation/evaluation.ts';
import { openBound, resealBound, sealBound } from '../rules/bound-row.ts';
import type { Resealer } from '../rules/openings.ts';
import type { Tenant } from '../rules/tenant.ts';
import type { Resealing } from '../store/amendments.ts';
import type { Change } from '../store/change.ts';
import { searchTermsOf } from '../store/queries/tokens.ts';
import type { Store } from '../store/store.ts';
import { type Unproven, unverifiedColumns } from '../store/stored-row.ts';
import type { Row } from '../store/tables.ts';
import { type Contents, contentsOfRow } from './contents/contents.ts';
import { outdatedDigests } from './contents/digest-versions.ts';
import { searchTerms } from './contents/search-terms.ts';
import type { TokenTypeName } from './contents/token-types.ts';
import { currentFingerprint } from './guesses/guesses.ts';
import { containersOfIntent, dataForToken, refingerprinted } from './intents/row.ts';

export interface TokenResealing {
  readonly store: Pick<Store, 'select'>;
  readonly tenant: Tenant;
  /** Set where another token stands for the value to deduplication. */
  readonly withoutTarget?: true | undefined;
}

export interface ResealedTokens {
  readonly change: Pick<Change, 'insert' | 'replace' | 'reseal' | 'refingerprint' | 'remove'>;
  readonly count: number;
}

/**
 * The tokens in their next version. For their readers nothing has changed but the fingerprints. What a row has under
 * active keys already is not computed or written again.
 */
export async function resealTokens(
  { store, tenant, withoutTarget }: TokenResealing,
  resealer: Resealer,
  rows: readonly Unproven<'tokens'>[],
): Promise<ResealedTokens> {
  const again = { reseal: [], refingerprint: [], replace: [] } as RowsByUpdate;
  const terms: Row<'search_terms'>[] = [];
  const outdated: TokenId[] = [];
  let count = 0;
  const pause = createPause();
  for (const row of rows) {
    await pause();
    tenant.quarantine.read(() => {
      const renewed = renewedToken({ tenant, withoutTarget }, resealer, row);
      again[renewed.update].push({ ...renewed.row, was_version: row.version });
      if (renewed.terms) {
        terms.push(...renewed.terms);
        outdated.push(row.token_id);
      }
      count += 1;
    });
  }
  const removed =
    outdated.length === 0 ? [] : await store.select(searchTermsOf(tenant.id, outdated));
  return {
    change: {
      reseal: { tokens: again.reseal },
      refingerprint: { tokens: again.refingerprint },
      replace: { tokens: again.replace },
      remove: { search_terms: removed },
      insert: { search_terms: terms },
    },
    count,
  };
}

/** Partial updates write fewer indexes than a replacement. */
type RowUpdate = 'reseal' | 'refingerprint' | 'replace';
type RowsByUpdate = Readonly<Record<RowUpdate, Resealing<'tokens'>[]>>;

interface RenewedToken {
  readonly row: Row<'tokens'>;
  readonly update: RowUpdate;
  /** All of the token, if those that are stored are under an earlier key. */
  readonly terms?: readonly Row<'search_terms'>[];
}

function renewedToken(
  { tenant, withoutTarget }: Pick<TokenResealing, 'tenant' | 'withoutTarget'>,
  resealer: Resealer,
  found: Unproven<'tokens'>,
): RenewedToken {
  const outdated = outdatedDigests(tenant, unverifiedColumns(found));
  if (!outdated.fingerprint && !outdated.terms) {
    const { row: before, sealed: data } = resealBound(resealer, 'tokens', found);
    return { row: { ...before, data, version: before.version + 1 }, update: 'reseal' };
  }
  const { row: before, text: secret } = openBound(resealer, 'tokens', found);
  const text = secret.reveal();
  const contents = contentsOfRow(before, JSON.parse(text) as Json);
  const evaluated = { contents, evaluation: newWriteEvaluation() };
  const isReplaced = outdated.fingerprint && withoutTarget === true;
  const unsealed = {
    ...before,
    version: before.version + 1,
    ...(outdated.fingerprint && { fingerprint: currentFingerprint(tenant, evaluated) }),
    ...(isReplaced && { deduplicated: 0 as const }),
  };
  const { keyring } = tenant;
  const sealing = { keyring, table: 'tokens', row: unsealed, random: resealer.random } as const;
  const row = { ...unsealed, data: sealBound(sealing, text) };
  return {
    row,
    update: isReplaced ? 'replace' : updateOf(before, row),
    ...(outdated.terms && { terms: searchTerms(tenant, row, evaluated) }),
  };
}

/** Partial updates do not count the stored bytes, and fingerprints have 43 or 44 characters. */
function updateOf(before: Row<'tokens'>, { fingerprint }: Row<'tokens'>): RowUpdate {
  if (fingerprint === before.fingerprint) return 'reseal';
  return fingerprint?.length === before.fingerprint?.length ? 'refingerprint' : 'replace';
}

/** The intents in their next version. */
export async function resealIntents(
  { tenant }: TokenResealing,
  resealer: Resealer,
  rows: readonly Unproven<'token_intents'>[],
): Promise<ResealedTokens> {
  const sealed: Resealing<'token_intents'>[] = [];
  const pause = createPause();
  for (const row of rows) {
    await pause();
    tenant.quarantine.read(() => {
      const again = outdatedDigests(tenant, unverifiedColumns(row)).fingerprint
        ? renewedIntent(tenant, resealer, row)
        : sealedAgain(resealer, row);
      sealed.push({ ...again, was_version: row.version });
    });
  }
  return { change: { reseal: { token_intents: sealed } }, count: sealed.length };
}

function sealedAgain(resealer: Resealer, found: Unproven<'token_intents'>): Row<'token_intents'> {
  const { row, sealed: data } = resealBound(resealer, 'token_intents', found);
  return { ...row, data, version: row.version + 1 };
}

function renewedIntent(
  tenant: Tenant,
  resealer: Resealer,
  found: Unproven<'token_intents'>,
): Row<'token_intents'> {
  const { row, data } = dataForToken(resealer, found);
  const [container] = containersOfIntent(row);
  assert(container !== undefined, 'an intent has the container of its type');
  const contents: Contents = {
    type: row.type as TokenTypeName,
    data: data.reveal(),
    // An intent has its type's own expression, over the data alone.
    container,
    mask: undefined,
    metadata: undefined,
    searchIndexes: [],
    fingerprintExpression: undefined,
    expiry: undefined,
    codeExpiresAt: undefined,
  };
  const fingerprint = currentFingerprint(tenant, { contents, evaluation: newWriteEvaluation() });
  return refingerprinted({ tenant, opener: resealer, random: resealer.random }, row, fingerprint);
}

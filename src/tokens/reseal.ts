/**
 * Tokens and token intents sealed again under the active keys, with their fingerprints and search terms where those
 * have new keys.
 */

import assert from 'node:assert/strict';
import { newWriteEvaluation } from '../expressions/evaluation/evaluation.ts';
import { resealBound, sealBound } from '../rules/bound-row.ts';
import type { Resealer } from '../rules/openings.ts';
import type { Quarantine } from '../rules/quarantine.ts';
import type { Tenant } from '../rules/tenant.ts';
import type { Resealing } from '../store/amendments.ts';
import type { Change } from '../store/change.ts';
import { searchTermsOf } from '../store/queries/tokens.ts';
import type { Store } from '../store/store.ts';
import type { Row } from '../store/tables.ts';
import { type Contents, contentsOfRow } from './contents/contents.ts';
import { hasCurrentDigests } from './contents/digest-versions.ts';
import { storedData } from './contents/sealed-row.ts';
import { searchTerms } from './contents/search-terms.ts';
import type { TokenTypeName } from './contents/token-types.ts';
import { currentFingerprint } from './guesses/guesses.ts';
import { containersOfIntent, dataForToken, refingerprinted } from './intents/row.ts';

export interface TokenResealing {
  readonly store: Pick<Store, 'select'>;
  readonly tenant: Tenant;
  readonly quarantine: Quarantine;
  /** Set where another token stands for the value to deduplication. */
  readonly withoutTarget?: true | undefined;
}

export interface ResealedTokens {
  readonly change: Pick<Change, 'insert' | 'replace' | 'reseal' | 'remove'>;
  readonly count: number;
}

/** The tokens in their next version. For their readers nothing has changed but the fingerprints. */
export async function resealTokens(
  { store, tenant, quarantine, withoutTarget }: TokenResealing,
  resealer: Resealer,
  rows: readonly Row<'tokens'>[],
): Promise<ResealedTokens> {
  const sealed: Resealing<'tokens'>[] = [];
  const renewed: RenewedToken[] = [];
  for (const row of rows) {
    quarantine.read(() => {
      if (hasCurrentDigests(tenant, row)) sealed.push(sealedAgain(resealer, row));
      else renewed.push(renewedToken({ tenant, withoutTarget }, resealer, row));
    });
  }
  const outdated = renewed.flatMap(({ hasTerms, row }) => (hasTerms ? [row.token_id] : []));
  const terms = outdated.length === 0 ? [] : await store.select(searchTermsOf(tenant.id, outdated));
  return {
    change: {
      reseal: { tokens: sealed },
      replace: { tokens: renewed.map(({ row }) => row) },
      remove: { search_terms: terms },
      insert: { search_terms: renewed.flatMap((one) => one.terms) },
    },
    count: sealed.length + renewed.length,
  };
}

function sealedAgain(resealer: Resealer, row: Row<'tokens'>): Resealing<'tokens'> {
  const data = resealBound(resealer, 'tokens', row);
  return { ...row, data, version: row.version + 1, was_version: row.version };
}

interface RenewedToken {
  readonly row: Row<'tokens'>;
  readonly hasTerms: boolean;
  readonly terms: readonly Row<'search_terms'>[];
}

function renewedToken(
  { tenant, withoutTarget }: Pick<TokenResealing, 'tenant' | 'withoutTarget'>,
  resealer: Resealer,
  before: Row<'tokens'>,
): RenewedToken {
  const { random } = resealer;
  const data = storedData(resealer, before);
  const evaluation = newWriteEvaluation();
  const evaluated = { contents: contentsOfRow(before, data), evaluation };
  const unsealed = {
    ...before,
    version: before.version + 1,
    fingerprint: before.fingerprint === null ? null : currentFingerprint(tenant, evaluated),
    ...(withoutTarget && { deduplicated: 0 as const }),
  };
  const { keyring } = tenant;
  const text = JSON.stringify(data);
  const row = {
    ...unsealed,
    data: sealBound({ keyring, table: 'tokens', row: unsealed, random }, text),
  };
  const hasTerms = before.search_indexes !== null || before.metadata !== null;
  return { row, hasTerms, terms: hasTerms ? searchTerms(tenant, row, evaluated) : [] };
}

/** The intents in their next version. */
export async function resealIntents(
  { tenant, quarantine }: TokenResealing,
  resealer: Resealer,
  rows: readonly Row<'token_intents'>[],
): Promise<ResealedTokens> {
  const sealed: Resealing<'token_intents'>[] = [];
  const renewed: Row<'token_intents'>[] = [];
  for (const row of rows) {
    quarantine.read(() => {
      if (!hasCurrentDigests(tenant, row)) {
        renewed.push(renewedIntent(tenant, resealer, row));
        return;
      }
      const data = resealBound(resealer, 'token_intents', row);
      sealed.push({ ...row, data, version: row.version + 1, was_version: row.version });
    });
  }
  return {
    change: { reseal: { token_intents: sealed }, replace: { token_intents: renewed } },
    count: sealed.length + renewed.length,
  };
}

function renewedIntent(
  tenant: Tenant,
  resealer: Resealer,
  row: Row<'token_intents'>,
): Row<'token_intents'> {
  const [container] = containersOfIntent(row);
  assert(container !== undefined, 'an intent has the container of its type');
  const contents: Contents = {
    type: row.type as TokenTypeName,
    data: dataForToken(resealer, row),
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

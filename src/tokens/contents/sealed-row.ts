/** A token as it is stored: data sealed, fingerprint keyed. */

import type { Instant } from '../../base/clock.ts';
import { invalid } from '../../base/errors.ts';
import type { Json } from '../../base/json.ts';
import type { Random } from '../../base/random.ts';
import { Secret } from '../../base/secret.ts';
import { ExpressionError } from '../../expressions/evaluation/error.ts';
import type { Evaluation } from '../../expressions/evaluation/evaluation.ts';
import { compileExpression, evaluateExpression } from '../../expressions/expression.ts';
import { keyVersionOf } from '../../keys/envelope.ts';
import {
  type BoundRow,
  openBound,
  requireBound,
  sealBound,
  type UnsealedToken,
} from '../../rules/bound-row.ts';
import { type Opener, openerOf } from '../../rules/openings.ts';
import type { Tenant, TenantKeys } from '../../rules/tenant.ts';
import type { RemovedRow } from '../../store/change.ts';
import { unverifiedColumns } from '../../store/stored-row.ts';
import type { Row } from '../../store/tables.ts';
import { codeExpiryOf, withoutCode } from './card-code.ts';
import type { Contents } from './contents.ts';
import { versionWithDigests } from './digest-versions.ts';
import { type TokenTypeName, tokenTypes } from './token-types.ts';

/** What follows from the contents alone. */
type Derived = Pick<
  Row<'tokens'>,
  | 'type'
  | 'container'
  | 'mask'
  | 'metadata'
  | 'fingerprint'
  | 'fingerprint_expression'
  | 'search_indexes'
  | 'expires_at'
  | 'expires_offset'
  | 'code_expires_at'
>;

export interface RowDerivation {
  readonly tenant: Tenant;
  readonly contents: Contents;
  readonly fingerprint: string | null;
  readonly now: Instant;
}

export interface Sealing {
  readonly tenant: TenantKeys;
  readonly data: Json;
  readonly random: Random;
  /** See {@link versionWithDigests}; absent where the digests are new. */
  readonly version?: number | undefined;
}

export function deriveRow({ tenant, contents, fingerprint, now }: RowDerivation): Derived {
  const code_expires_at = codeExpiryOf(contents, tenant.quotas, now);
  const codeIsGone = code_expires_at !== null && code_expires_at <= now;
  return {
    type: contents.type,
    container: contents.container,
    mask: contents.mask === undefined ? null : JSON.stringify(contents.mask),
    metadata: contents.metadata === undefined ? null : JSON.stringify(contents.metadata),
    fingerprint,
    fingerprint_expression: contents.fingerprintExpression ?? null,
    search_indexes:
      contents.searchIndexes.length === 0 ? null : JSON.stringify(contents.searchIndexes),
    expires_at: contents.expiry?.at ?? null,
    expires_offset: contents.expiry?.offsetMinutes ?? null,
    code_expires_at: codeIsGone ? null : code_expires_at,
  };
}

/**
 * The row with its data, which opens only while every other column is unchanged. The card code is left out
 * if no column says how long it may stay.
 */
export function sealRow(
  { tenant, data, random, version }: Sealing,
  row: UnsealedToken,
): Row<'tokens'> {
  const stays = row.code_expires_at === null ? withoutCode(row.type as TokenTypeName, data) : data;
  const sealing = { keyring: tenant.keyring, table: 'tokens', row, random, version } as const;
  return { ...row, data: sealBound(sealing, JSON.stringify(stays)) };
}

/**
 * The data of a stored token, without an expired card code, whether or not that was
 * removed from the disk yet. Its `Secret` is opened only where access was decided.
 */
export function openData(
  opener: Opener,
  found: BoundRow<'tokens'>,
  now: Instant,
): OpenedData<Row<'tokens'>> {
  const { row, text } = openBound(opener, 'tokens', found);
  return { row, data: stillThere(row, JSON.parse(text.reveal()) as Json, now) };
}

/** Data that has opened, and the row that is therefore as the vault wrote it. */
export interface OpenedData<R> {
  readonly row: R;
  readonly data: Secret<Json>;
}

/** A token or an intent, to be opened where it is shown. */
export interface SealedData<R> {
  /** Whether it has a mask, its own or that of its type. Nothing else of the row is known before it opens. */
  readonly hasMask: boolean;
  open(): OpenedData<R>;
  /** @throws VaultError `integrity` where opening would; for those who are shown nothing of it. */
  require(): R;
}

export function sealedData(
  opener: Opener,
  row: BoundRow<'tokens'>,
  now: Instant,
): SealedData<Row<'tokens'>> {
  return {
    hasMask: hasMask(row),
    open: () => openData(opener, row, now),
    require: () => requireBound(opener, 'tokens', row),
  };
}

/** Data that the request itself brought. */
export function broughtData(
  row: Row<'tokens'>,
  data: Json,
  now: Instant,
): SealedData<Row<'tokens'>> {
  return {
    hasMask: hasMask(row),
    open: () => ({ row, data: stillThere(row, data, now) }),
    require: () => row,
  };
}

/** Whether the token has a mask, which an entry says before the row is known to be as the vault wrote it. */
export function hasMask(row: BoundRow<'tokens'>): boolean {
  const { type, mask } = unverifiedColumns<'tokens'>(row);
  if (mask !== null) return mask !== 'null';
  return tokenTypes[type as TokenTypeName]?.mask !== undefined;
}

/** The part of the row's data that still exists at that time. */
function stillThere(row: Row<'tokens'>, data: Json, now: Instant): Secret<Json> {
  const hasCode = row.code_expires_at !== null && row.code_expires_at > now;
  return new Secret(hasCode ? data : withoutCode(row.type as TokenTypeName, data));
}

/** A token with an expired code, with data that was sealed without it. */
export function rowWithoutCode(
  tenant: Tenant,
  found: BoundRow<'tokens'>,
  { now, random }: { readonly now: Instant; readonly random: Random },
): Row<'tokens'> {
  const { row, data: secret } = openData(openerOf('expire card codes', tenant), found, now);
  const data = secret.reveal();
  const updated = { ...row, version: row.version + 1, code_expires_at: null };
  return sealRow({ tenant, data, random, version: versionWithDigests(tenant, row) }, updated);
}

/** A stored token as a change removes it, with what the log is to remember of it. */
export function removedToken(row: BoundRow<'tokens'>): RemovedRow<'tokens'> {
  const { tenant_id, token_id, version, container } = row;
  return { tenant_id, token_id, version, container, data_version: sealedBy(row) };
}

/** The version of the data key that sealed the row; 0 for a row whose data was altered outside the vault. */
export function sealedBy(row: BoundRow<'tokens'>): number {
  return keyVersionOf(unverifiedColumns<'tokens'>(row).data) ?? 0;
}

/** Contents, and what the expressions over them may cost together with those of the same request. */
export interface Evaluated {
  readonly contents: Contents;
  readonly evaluation: Evaluation;
}

/**
 * What the fingerprint is made of.
 * @throws VaultError `validation_failed` when the expression gives nothing to fingerprint.
 */
export function fingerprintedText(evaluated: Evaluated): string {
  const { contents } = evaluated;
  const own = contents.fingerprintExpression;
  const expression = own ?? tokenTypes[contents.type].fingerprint;
  // Empty data is a value like any other; an expression that found nothing would make all tokens equal.
  return own === undefined && contents.data === ''
    ? ''
    : evaluateText(expression, 'fingerprint_expression', evaluated);
}

/**
 * One non-empty string from an expression over the contents. The expression cannot see a card code: ids,
 * fingerprints, and search terms outlive it.
 */
export function evaluateText(
  expression: string,
  path: string,
  { contents: { type, data, metadata }, evaluation }: Evaluated,
): string {
  const scope = { data: withoutCode(type, data), ...(metadata && { metadata }) };
  const value = attemptValue(
    () => evaluateExpression(compileExpression(expression, path), scope, evaluation),
    path,
  );
  if (value === undefined || value === null || value === '')
    throw invalid(path, 'must result in a value that is not empty');
  if (typeof value === 'object') return JSON.stringify(value);
  return String(value);
}

function attemptValue(run: () => Json | undefined, path: string): Json | undefined {
  try {
    return run();
  } catch (error) {
    if (error instanceof ExpressionError) throw invalid(path, error.message);
    throw error;
  }
}

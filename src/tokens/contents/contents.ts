/** The contents of a token: the values that a request stores, checked and normalized, before they are sealed. */

import type { Clock, Instant } from '../../base/clock.ts';
import { type Container, containerForm, parseContainer } from '../../base/container.ts';
import { type Expiry, expiryForms, parseExpiry } from '../../base/dates.ts';
import { invalid } from '../../base/errors.ts';
import { flawOf, isObject, type Json } from '../../base/json.ts';
import { mergePatch } from '../../base/merge-patch.ts';
import { createValidationErrors, type ValidationErrors } from '../../base/validation-errors.ts';
import { compileExpression } from '../../expressions/expression.ts';
import { compileTemplate } from '../../expressions/template.ts';
import type { Row } from '../../store/tables.ts';
import { hasCode } from './card-code.ts';
import { parseTokenType, type TokenTypeName, tokenTypes } from './token-types.ts';

export const metadataKeysMax = 50;
export const metadataKeyLengthMax = 100;
const metadataValueLengthMax = 500;
export const searchIndexesMax = 10;
/** Of all of them together, because they are compiled together. */
export const searchIndexesLengthMax = 6_000;
const fingerprintExpressionLengthMax = 400;
const maskLengthMax = 6_000;
/** The limit for the data of one body, and for the result of its patches over time. */
export const dataLengthMax = 1_048_576;

export type Metadata = Readonly<Record<string, string>>;

export interface Contents {
  readonly type: TokenTypeName;
  readonly data: Json;
  readonly container: Container;
  /** `undefined` means the mask of the type, `null` none. */
  readonly mask: Json | undefined;
  readonly metadata: Metadata | undefined;
  readonly searchIndexes: readonly string[];
  /** `undefined` means the expression of the type, also where a request wrote that out. */
  readonly fingerprintExpression: string | undefined;
  readonly expiry: Expiry | undefined;
  /** When the card code in the data is removed; `undefined` for one that is stored now, or if there is none. */
  readonly codeExpiresAt: Instant | undefined;
}

/** The create request as the wire schema lets it through; null means absent. */
export interface TokenRequest {
  readonly id?: string | null;
  /** Takes the place of type and data. */
  readonly token_intent_id?: string | null;
  readonly type?: string | null;
  readonly data?: Json;
  /** A JWE for a key of the tenant, in place of data. */
  readonly encrypted?: string | null;
  readonly mask?: Json;
  readonly containers?: readonly string[] | null;
  readonly metadata?: Readonly<Record<string, string>> | null;
  readonly search_indexes?: readonly string[] | null;
  readonly fingerprint_expression?: string | null;
  readonly deduplicate_token?: boolean | null;
  readonly expires_at?: string | null;
}

/** The update request; an absent attribute stays, null removes. */
export interface TokenPatch {
  readonly data?: Json;
  readonly mask?: Json;
  readonly containers?: readonly string[] | null;
  readonly metadata?: Readonly<Record<string, string | null>> | null;
  readonly search_indexes?: readonly string[] | null;
  readonly fingerprint_expression?: string | null;
  readonly deduplicate_token?: boolean | null;
  readonly expires_at?: string | null;
}

/** @throws VaultError `validation_failed` naming every attribute that is wrong. */
export function contentsOfRequest(request: TokenRequest, clock: Clock): Contents {
  const errors = createValidationErrors();
  const type = parseType(request.type, errors);
  if (request.data === undefined || request.data === null) errors.add('data', 'is required');
  const checked = checkAttributes(request, clock.now(), errors);
  const data = type && errors.attempt(() => parseData(type, request.data ?? null));
  errors.settle();
  if (type === undefined || data === undefined) throw invalid('data', 'is required');
  const row = tokenTypes[type];
  return {
    type,
    data,
    container: checked.container ?? row.container,
    mask: request.mask ?? undefined,
    metadata: request.metadata ?? undefined,
    searchIndexes: request.search_indexes ?? row.searchIndexes,
    fingerprintExpression: ownExpression(type, request.fingerprint_expression),
    expiry: checked.expiry,
    codeExpiresAt: undefined,
  };
}

/**
 * The declared type and the target container of a request whose data is not known yet.
 * @throws VaultError `validation_failed` naming every other invalid attribute.
 */
export function placeOfRequest(
  request: TokenRequest,
  clock: Clock,
): { readonly type: TokenTypeName; readonly container: Container } {
  const errors = createValidationErrors();
  const type = parseType(request.type, errors);
  const { container } = checkAttributes(request, clock.now(), errors);
  errors.settle();
  if (type === undefined) throw invalid('type', 'is required');
  return { type, container: container ?? tokenTypes[type].container };
}

/** The contents of a stored token, whose data was opened. */
export function contentsOfRow(row: Row<'tokens'>, data: Json): Contents {
  return {
    type: row.type as TokenTypeName,
    data,
    container: row.container,
    mask: row.mask === null ? undefined : (JSON.parse(row.mask) as Json),
    metadata: row.metadata === null ? undefined : (JSON.parse(row.metadata) as Metadata),
    searchIndexes: row.search_indexes === null ? [] : (JSON.parse(row.search_indexes) as string[]),
    fingerprintExpression: row.fingerprint_expression ?? undefined,
    expiry:
      row.expires_at === null
        ? undefined
        : { at: row.expires_at, offsetMinutes: row.expires_offset ?? 0 },
    codeExpiresAt: row.code_expires_at ?? undefined,
  };
}

/**
 * Applies a JSON merge patch (RFC 7386) to data, mask and metadata; the other attributes replace.
 * @throws VaultError `validation_failed` naming every attribute whose result is not valid.
 */
export function patchContents(contents: Contents, patch: TokenPatch, clock: Clock): Contents {
  const errors = createValidationErrors();
  const mask = errors.attempt(() => patchMask(contents, patch.mask));
  const metadata =
    patch.metadata === undefined ? contents.metadata : mergeMetadata(contents, patch.metadata);
  const checked = checkAttributes(
    { ...patch, mask: mask ?? null, metadata: metadata ?? null },
    clock.now(),
    errors,
  );
  const data = errors.attempt(() => patchData(contents, patch.data));
  errors.settle();
  return {
    ...contents,
    ...(data !== undefined && { data }),
    mask,
    metadata,
    container: checked.container ?? contents.container,
    searchIndexes:
      patch.search_indexes === undefined ? contents.searchIndexes : (patch.search_indexes ?? []),
    fingerprintExpression:
      patch.fingerprint_expression === undefined
        ? contents.fingerprintExpression
        : ownExpression(contents.type, patch.fingerprint_expression),
    expiry: patch.expires_at === undefined ? contents.expiry : checked.expiry,
    codeExpiresAt: hasCode(contents.type, patch.data) ? undefined : contents.codeExpiresAt,
  };
}

/** One stored form for equal expressions: the unique index over equal tokens compares expressions as strings. */
function ownExpression(type: TokenTypeName, text: string | null | undefined): string | undefined {
  return text === tokenTypes[type].fingerprint ? undefined : (text ?? undefined);
}

function parseType(
  text: string | null | undefined,
  errors: ValidationErrors,
): TokenTypeName | undefined {
  if (text === undefined || text === null) {
    errors.add('type', 'is required');
    return undefined;
  }
  const type = parseTokenType(text);
  if (type === undefined) {
    errors.add('type', `must be one of ${Object.keys(tokenTypes).join(', ')}`);
  }
  return type;
}

function parseData(type: TokenTypeName, data: Json): Json {
  const flaw = flawOf(data);
  if (flaw !== undefined) throw invalid('data', flaw);
  const parsed = tokenTypes[type].parseData(data);
  // The length of a body is limited, but three of its characters can mean what JSON writes in twenty.
  if (JSON.stringify(parsed).length > dataLengthMax) {
    throw invalid('data', `must have at most ${dataLengthMax} characters as JSON`);
  }
  return parsed;
}

function patchData(contents: Contents, patch: Json | undefined): Json {
  if (patch === undefined) return contents.data;
  const merged = merge(contents.data, patch, 'data');
  if (merged === null) throw invalid('data', 'must not be removed');
  return parseData(contents.type, merged);
}

/** A patch of the type's mask merges into the mask that the caller saw. */
function patchMask(contents: Contents, patch: Json | undefined): Json | undefined {
  if (patch === undefined) return contents.mask;
  const before = contents.mask === undefined ? tokenTypes[contents.type].mask : contents.mask;
  return merge(before, patch, 'mask');
}

/** A patch is checked before it is merged, because merging goes as deep as the patch does. */
function merge(target: Json | undefined, patch: Json, path: string): Json {
  const flaw = flawOf(patch);
  if (flaw !== undefined) throw invalid(path, flaw);
  return mergePatch(target, patch);
}

function mergeMetadata(
  contents: Contents,
  patch: Readonly<Record<string, string | null>> | null,
): Metadata | undefined {
  const merged = mergePatch(contents.metadata, patch);
  return isObject(merged) ? (merged as Metadata) : undefined;
}

interface CheckedPlacement {
  readonly container: Container | undefined;
  readonly expiry: Expiry | undefined;
}

/** The rules that a new token and a changed one share. */
function checkAttributes(
  request: TokenRequest | TokenPatch,
  now: Instant,
  errors: ValidationErrors,
): CheckedPlacement {
  const mask = request.mask ?? undefined;
  if (mask !== undefined) errors.attempt(() => checkMask(mask));
  checkMetadata(request.metadata ?? {}, errors);
  const indexes = request.search_indexes ?? [];
  if (indexes.length > searchIndexesMax) {
    errors.add('search_indexes', `must have at most ${searchIndexesMax} expressions`);
  }
  errors.attempt(() => checkIndexes(indexes.slice(0, searchIndexesMax), errors));
  const fingerprint = request.fingerprint_expression ?? undefined;
  if (fingerprint !== undefined) errors.attempt(() => checkFingerprint(fingerprint));
  return {
    container: errors.attempt(() => readContainer(request.containers)),
    expiry: errors.attempt(() => readExpiry(request.expires_at, now)),
  };
}

function checkIndexes(indexes: readonly string[], errors: ValidationErrors): void {
  const length = indexes.reduce((sum, text) => sum + text.length, 0);
  if (length > searchIndexesLengthMax) {
    const message = `must have at most ${searchIndexesLengthMax} characters together`;
    throw invalid('search_indexes', message);
  }
  indexes.forEach((text, index) => {
    errors.attempt(() => compileExpression(text, `search_indexes[${index}]`));
  });
}

function checkMask(mask: Json): void {
  const flaw = flawOf(mask);
  if (flaw !== undefined) throw invalid('mask', flaw);
  if (JSON.stringify(mask).length > maskLengthMax) {
    throw invalid('mask', `must have at most ${maskLengthMax} characters as JSON`);
  }
  compileTemplate(mask, 'mask');
}

function checkFingerprint(text: string): void {
  if (text.length > fingerprintExpressionLengthMax) {
    const message = `must have at most ${fingerprintExpressionLengthMax} characters`;
    throw invalid('fingerprint_expression', message);
  }
  // The one expression that is stored as it is; PostgreSQL keeps no U+0000, UTF-8 no half character.
  if (text.includes('\0') || !text.isWellFormed()) {
    throw invalid('fingerprint_expression', 'must not contain U+0000 or half a surrogate pair');
  }
  compileExpression(text, 'fingerprint_expression');
}

function checkMetadata(
  metadata: Readonly<Record<string, string | null>>,
  errors: ValidationErrors,
): void {
  const entries = Object.entries(metadata);
  if (entries.length > metadataKeysMax)
    errors.add('metadata', `must have at most ${metadataKeysMax} keys`);
  for (const [key, value] of entries.slice(0, metadataKeysMax)) {
    if (key === '' || key.length > metadataKeyLengthMax) {
      errors.add('metadata', `must have keys of 1 to ${metadataKeyLengthMax} characters`);
    } else if (value !== null && value.length > metadataValueLengthMax) {
      errors.add(`metadata.${key}`, `must have at most ${metadataValueLengthMax} characters`);
    }
  }
}

function readContainer(containers: readonly string[] | null | undefined): Container | undefined {
  if (containers === undefined || containers === null || containers.length === 0) return undefined;
  const [text = '', ...others] = containers;
  if (others.length > 0) throw invalid('containers', 'must contain exactly one container');
  const container = parseContainer(text);
  if (container === undefined) throw invalid('containers[0]', containerForm);
  return container;
}

function readExpiry(text: string | null | undefined, now: Instant): Expiry | undefined {
  if (text === undefined || text === null) return undefined;
  const expiry = parseExpiry(text);
  if (expiry === undefined) throw invalid('expires_at', expiryForms);
  if (expiry.at <= now) throw invalid({ expires_at: ['must be in the future', expiryForms] });
  return expiry;
}

/** True when a token is gone for every reader, whether or not it was removed from the disk yet. */
export function hasExpired(row: { readonly expires_at: Instant | null }, now: Instant): boolean {
  return row.expires_at !== null && row.expires_at <= now;
}

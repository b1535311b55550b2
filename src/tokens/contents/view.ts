/** What may leave the vault: the one place that turns a stored token into the form that a caller sees. */

import type { Instant } from '../../base/clock.ts';
import { formatInstant, formatTimestamp } from '../../base/dates.ts';
import type { Json, JsonObject } from '../../base/json.ts';
import { ExpressionError } from '../../expressions/evaluation/error.ts';
import type { Evaluation } from '../../expressions/evaluation/evaluation.ts';
import { compileTemplate, evaluateTemplate } from '../../expressions/template.ts';
import type { Grant } from '../../rules/policy.ts';
import type { TokenBody } from '../../rules/reply.ts';
import type { Shown } from '../../store/log-chain/disclosure.ts';
import type { Row } from '../../store/tables.ts';
import type { SealedData } from './sealed-row.ts';
import { summaryOf, type TokenTypeName, tokenTypes } from './token-types.ts';

/** Called when a stored mask cannot be evaluated and the data is therefore left out. */
export type OnMaskFailure = () => void;

/** What masks see of a row: of an intent, that it has no mask of its own. */
type Masked = Pick<Row<'tokens'>, 'type' | 'mask'>;

/** What decides how data is shown. */
export interface DisclosureBasis<R extends Masked = Masked> {
  /** Opened where something of it is shown; otherwise it is still required to be unaltered. */
  readonly sealed: SealedData<R>;
  readonly grant: Grant;
  /** Of the request that shows it, with all else that it shows. */
  readonly evaluation: Evaluation;
  readonly onMaskFailure: OnMaskFailure;
}

export interface View extends DisclosureBasis<Row<'tokens'>> {
  readonly extras?: Deduplication;
}

export interface Deduplication {
  readonly deduplicated: boolean;
  readonly deduplication_behavior?: string;
}

/** The token as the grant lets the caller see it. Absent attributes are left out, never null. */
export function viewToken(view: View): ViewedToken {
  const { extras } = view;
  const { row, shown } = disclosed(view);
  const body = {
    id: row.token_id,
    tenant_id: row.tenant_id,
    type: row.type,
    ...shown,
    ...definitionOf(row),
    ...(row.fingerprint !== null && { fingerprint: row.fingerprint }),
    containers: [row.container],
    ...(row.metadata !== null && { metadata: JSON.parse(row.metadata) }),
    ...historyOf(row),
    ...(extras && { _extras: extras }),
  };
  return { row, body };
}

/** A token that a caller is shown, and its row, which is as the vault wrote it. */
export interface ViewedToken {
  readonly row: Row<'tokens'>;
  readonly body: TokenBody;
}

/** The view for a caller who made or changed the token and may not read it. */
export function viewUnread(row: Row<'tokens'>, extras?: Deduplication): TokenBody {
  return {
    id: row.token_id,
    tenant_id: row.tenant_id,
    type: row.type,
    ...expiryOf(row),
    containers: [row.container],
    ...historyOf(row),
    ...(extras && { _extras: extras }),
  };
}

/** The view of a created or changed token in an event: never its data, nor its mask. */
export function viewInEvent(row: Row<'tokens'>): JsonObject {
  const { mask: _mask, ...definition } = definitionOf(row);
  return {
    id: row.token_id,
    type: row.type,
    ...(row.metadata !== null && { metadata: JSON.parse(row.metadata) }),
    containers: [row.container],
    ...(row.fingerprint !== null && { fingerprint: row.fingerprint }),
    ...definition,
    ...historyOf(row),
  };
}

/**
 * {@link viewToken} over time. Only data can go while nothing changes the token, so all else is made once:
 * of two such views the parts that are equal are mostly the same objects.
 */
export function viewOverTime(
  view: Omit<View, 'sealed'>,
  sealedAt: (instant: Instant) => SealedData<Row<'tokens'>>,
): (instant: Instant) => TokenBody {
  let first: { readonly instant: Instant; readonly body: TokenBody } | undefined;
  return (instant) => {
    if (first?.instant === instant) return first.body;
    const sealed = sealedAt(instant);
    if (first) return shownAgain(first.body, { ...view, sealed });
    const { body } = viewToken({ ...view, sealed });
    first = { instant, body };
    return body;
  };
}

/**
 * The view for a caller without `token:read` whose values were deduplicated to the token. It names the
 * container only if the caller holds some permission there.
 */
export function viewDeduplicated(
  row: Row<'tokens'>,
  { extras, reachable }: { readonly extras: Deduplication; readonly reachable: boolean },
): TokenBody {
  return {
    id: row.token_id,
    ...(reachable && { tenant_id: row.tenant_id }),
    type: row.type,
    fingerprint: row.fingerprint,
    ...(reachable && { containers: [row.container] }),
    _extras: extras,
  };
}

/** The five attributes that an update leaves out when it made the token equal to an unreadable one. */
export function withoutContents(body: TokenBody): TokenBody {
  const { data, mask, metadata, fingerprint_expression, search_indexes, ...others } = body;
  const { card, bank, network_token, ...rest } = others;
  return rest as TokenBody;
}

/** A token as an earlier response had it, its data as the grant shows it now. */
export function shownAgain(body: TokenBody, sight: DisclosureBasis): TokenBody {
  const { data, card, bank, network_token, ...others } = body;
  return { ...others, ...shownData(sight) } as TokenBody;
}

/** The log's description of data shown by {@link shownData}. */
export function shownAs({ transform }: Grant, masked: { readonly hasMask: boolean }): Shown {
  if (transform === 'reveal') return 'revealed';
  return transform === 'mask' && masked.hasMask ? 'masked' : 'redacted';
}

/** The mask in force: the token's own, else that of its type; `undefined` when it has none. */
export function maskOf(row: Masked): Json | undefined {
  if (row.mask === null) return tokenTypes[row.type as TokenTypeName].mask;
  return (JSON.parse(row.mask) as Json) ?? undefined;
}

function definitionOf(row: Row<'tokens'>): JsonObject {
  const mask = maskOf(row);
  const type = tokenTypes[row.type as TokenTypeName];
  return {
    ...(mask !== undefined && { mask }),
    ...(row.fingerprint !== null && {
      fingerprint_expression: row.fingerprint_expression ?? type.fingerprint,
    }),
    ...(row.search_indexes !== null && {
      search_indexes: JSON.parse(row.search_indexes) as string[],
    }),
    ...expiryOf(row),
  };
}

function expiryOf({ expires_at, expires_offset }: Row<'tokens'>): JsonObject {
  return expires_at === null ? {} : { expires_at: formatInstant(expires_at, expires_offset ?? 0) };
}

function historyOf(row: Row<'tokens'>): JsonObject {
  return {
    created_by: row.created_by,
    created_at: formatTimestamp(row.created_at),
    ...(row.modified_at !== null && {
      modified_by: row.modified_by,
      modified_at: formatTimestamp(row.modified_at),
    }),
  };
}

/** Data and summary by transform. */
export function shownData(basis: DisclosureBasis): JsonObject {
  return disclosed(basis).shown;
}

/**
 * The row is known once its data has opened. The summary of a card shows its BIN and last four digits, so it is shown
 * with revealed data and with the type's own mask, never with a mask that a caller chose to show less.
 */
function disclosed<R extends Masked>({
  sealed,
  grant,
  evaluation,
  onMaskFailure,
}: DisclosureBasis<R>): { readonly row: R; readonly shown: JsonObject } {
  if (grant.transform !== 'reveal' && (grant.transform === 'redact' || !sealed.hasMask)) {
    // Nothing of it is shown, and still it is shown only where nothing of the row was altered.
    return { row: sealed.require(), shown: {} };
  }
  const { row, data: secret } = sealed.open();
  const type = row.type as TokenTypeName;
  const data = secret.reveal();
  if (grant.transform === 'reveal') return { row, shown: { data, ...summaryOf(type, data) } };
  const mask = maskOf(row);
  if (mask === undefined) return { row, shown: {} };
  try {
    const masked = evaluateTemplate(compileTemplate(mask, 'mask'), { data }, evaluation);
    const shown = {
      ...(masked !== undefined && masked !== null && { data: masked }),
      ...(row.mask === null && summaryOf(type, data)),
    };
    return { row, shown };
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    onMaskFailure();
    return { row, shown: {} };
  }
}

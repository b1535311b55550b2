/** Cursors of token lists: where a page ended, sealed for the question it was a response to. */

import type { Instant } from '../../base/clock.ts';
import { invalid } from '../../base/errors.ts';
import type { TokenId } from '../../base/ids.ts';
import { openCursor, sealCursor } from '../../keys/cursor.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { TokenPosition } from '../../store/queries/token-sources.ts';
import type { Row } from '../../store/tables.ts';
import type { TokenFilter } from './filter.ts';

/** A cursor is valid for one route with one filter. */
interface CursorQuery {
  readonly route: string;
  readonly filter: TokenFilter;
  readonly start?: string | undefined;
}

export interface OpenedCursor {
  readonly place: TokenPosition;
  /** Number of the page that begins there. */
  readonly page: number;
}

type Payload = readonly [at: Instant, id: TokenId, page: number];

/** The cursor that leads on from the last of these rows. */
export function sealTokenCursor(
  tenant: Tenant,
  question: CursorQuery,
  rows: readonly Pick<Row<'tokens'>, 'created_at' | 'token_id'>[],
  page = 1,
): string | undefined {
  const last = rows.at(-1);
  if (last === undefined) return undefined;
  const payload: Payload = [last.created_at, last.token_id, page];
  return sealCursor(tenant.keyring.secret('cursor'), bindingOf(question), payload);
}

/** @throws VaultError `validation_failed` when it was not made for this question. */
export function openTokenCursor(tenant: Tenant, question: CursorQuery): OpenedCursor | undefined {
  const { start } = question;
  if (start === undefined) return undefined;
  const payload = openCursor(tenant.keyring.secret('cursor'), bindingOf(question), start);
  if (payload === undefined) {
    throw invalid('start', 'must be the cursor of an earlier response to the same query');
  }
  const [at, id, page] = payload as unknown as Payload;
  return { place: { at, id }, page };
}

/** Filters hold values; they go into the keyed digest of the cursor and not into the cursor. */
function bindingOf({ route, filter }: CursorQuery): string {
  return `${route} ${JSON.stringify(filter)}`;
}

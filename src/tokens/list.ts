/** Lists and searches of tokens, newest first: by cursor, or by page with exact totals. */

import type { Instant } from '../base/clock.ts';
import { newEvaluation } from '../expressions/evaluation/evaluation.ts';
import { type Caller, payerOf } from '../rules/caller.ts';
import { entryOf } from '../rules/log-entries.ts';
import type { Decide } from '../rules/operation.ts';
import { refuse } from '../rules/refusal.ts';
import type { ListedToken } from '../store/queries/token-pages.ts';
import { isWhole } from '../store/stored-row.ts';
import { countSearch } from './guesses/guesses.ts';
import { itemsOf, type LargeTokens } from './large-tokens.ts';
import { readTokens } from './reply-expiry.ts';
import { findTokens, findTokensAt } from './search/choose-index.ts';
import { underCurrentKeys } from './search/current-keys.ts';
import { openTokenCursor, sealTokenCursor } from './search/cursor.ts';
import { conditionsOf, containerAllowed, type TokenFilter } from './search/filter.ts';
import { showTokens } from './show.ts';

/** A list is decided by one permission and a search by another; they differ in nothing else. */
export interface TokenListing {
  readonly permission: 'token:read' | 'token:search';
  /** Method and path; a cursor is good for no other. */
  readonly route: string;
  readonly filter: TokenFilter;
  readonly size?: number | undefined;
  /** Cursor of an earlier response to the same query; takes the place of `page`. */
  readonly start?: string | undefined;
  /** From 1. */
  readonly page?: number | undefined;
}

const pageSizeDefault = 20;

/**
 * A walk along the cursors returns every token that exists from its beginning to its end exactly
 * once, whatever is created and deleted in the meantime. A page requested by number states its number.
 *
 * @throws VaultError `validation_failed` for a cursor that was not made for this list.
 */
export function listByCursor(tools: LargeTokens, caller: Caller, listing: TokenListing): Decide {
  const { size = pageSizeDefault } = listing;
  const after = openTokenCursor(caller.tenant, listing)?.place;
  const number = after ? undefined : listing.page;
  return deciding(tools, caller, listing, async (asked, now) => {
    const conditions = conditionsOf(asked, listing.permission, { ...listing, now });
    const limit = size === 0 ? 0 : size + 1;
    const payer = payerOf(caller);
    const offset = ((number ?? 1) - 1) * size;
    const rows = await findTokens(tools.store, conditions, { after, offset, limit, payer });
    const page = rows.slice(0, size);
    const next = rows.length > size ? sealTokenCursor(caller.tenant, listing, page) : undefined;
    const pagination = {
      page_size: size,
      ...(number !== undefined && { page_number: number }),
      ...(next !== undefined && { next }),
    };
    return { page, pagination };
  });
}

/** @throws VaultError `validation_failed` for a cursor that was not made for this list. */
export function listByPage(tools: LargeTokens, caller: Caller, listing: TokenListing): Decide {
  const { size = pageSizeDefault } = listing;
  const after = openTokenCursor(caller.tenant, listing);
  const number = after?.page ?? listing.page ?? 1;
  return deciding(tools, caller, listing, async (asked, now) => {
    const conditions = conditionsOf(asked, listing.permission, { ...listing, now });
    const payer = payerOf(caller);
    const place = after ? { offset: 0, limit: 0 } : { offset: (number - 1) * size, limit: size };
    const { rows, total } = await findTokensAt(tools.store, conditions, { ...place, payer });
    const limit = size === 0 ? 0 : size + 1;
    const found = after
      ? await findTokens(tools.store, conditions, { after: after.place, limit, payer })
      : rows;
    const page = found.slice(0, size);
    const more = after ? found.length > size : number * size < total;
    const next = more ? sealTokenCursor(caller.tenant, listing, page, number + 1) : undefined;
    return {
      page,
      pagination: {
        total_items: total,
        page_number: number,
        page_size: size,
        total_pages: size === 0 ? 0 : Math.ceil(total / size),
        ...(next !== undefined && { next }),
      },
    };
  });
}

interface ListedTokens {
  readonly page: readonly ListedToken[];
  readonly pagination: object;
}

/**
 * The parts that every list shares: the permission, the view of each token, and the log entries. A
 * page with large tokens is not held in memory: each of those is read while the page is being written, as it
 * is then, with its own entry in the log.
 */
function deciding(
  tools: LargeTokens,
  caller: Caller,
  { permission, filter, start }: TokenListing,
  find: (asked: Pick<Caller, 'tenant' | 'policy'>, now: Instant) => Promise<ListedTokens>,
): Decide {
  const operation = permission === 'token:search' ? ('search' as const) : ('list' as const);
  return async () => {
    const now = tools.clock.now();
    if (!containerAllowed(caller, permission, filter)) {
      return refuse(caller, now, { entity: 'token', id: '*', permission });
    }
    // A cursor goes on with a search that was counted.
    const searched = start === undefined ? (filter.data ?? []) : [];
    await countSearch({ store: tools.store, now }, caller, searched);
    const { page, pagination } = await underCurrentKeys(tools, caller.tenant, (tenant) =>
      find({ tenant, policy: caller.policy }, now),
    );
    const evaluation = newEvaluation();
    const rows = page.filter(isWhole);
    const showing = { rows, permission, through: operation, now, evaluationFor: () => evaluation };
    const { bodies, reads, shown } = await showTokens(tools, caller, showing);
    const listed = entryOf(caller, now, { entity: 'token', id: caller.tenant.id, operation });
    const change = { entries: [listed, ...reads] } as const;
    if (rows.length === page.length) {
      const body = { pagination, data: bodies };
      return { change, reply: { status: 200, body, ...readTokens(shown) } };
    }
    const items = itemsOf(tools, { ...showing, page, bodies, filter, evaluation });
    return { change, reply: { status: 200, list: { pagination, items } } };
  };
}

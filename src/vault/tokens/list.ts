/** Lists and searches of tokens, newest first: by cursor, or by page with exact totals. */
import { type Evaluation, newEvaluation } from '../../expressions/evaluation.ts';
import type { Instant } from '../../lib/clock.ts';
import type { LogEntry } from '../../lib/log-chain.ts';
import { createPause } from '../../lib/pauses.ts';
import type { Row } from '../../store/tables.ts';
import { decide } from '../access/access.ts';
import type { Caller } from '../access/caller.ts';
import { entryOf } from '../logs/audit.ts';
import { type Decide, refuse, type ShownToken } from '../perform.ts';
import { openTokenCursor, sealTokenCursor } from './cursor.ts';
import { fadingReads } from './fading.ts';
import { conditionsOf, containerAllowed, type TokenFilter } from './filter.ts';
import { findTokens, findTokensAt } from './find.ts';
import type { TokenReading } from './read.ts';
import { openData } from './row.ts';
import { type TokenBody, viewToken } from './view.ts';

/** A list is decided by one permission and a search by another; they differ in nothing else. */
export interface TokenListing {
  readonly permission: 'token:read' | 'token:search';
  /** Method and path; a cursor is good for no other. */
  readonly route: string;
  readonly filter: TokenFilter;
  readonly size?: number | undefined;
  /** Cursor of an earlier answer to the same question. */
  readonly start?: string | undefined;
}

/** A page by its number, from 1; a cursor takes its place. */
export type NumberedListing = TokenListing & { readonly page?: number | undefined };

export const pageSizeDefault = 20;

/**
 * A walk along the cursors meets every token that is there from its beginning to its end exactly
 * once, whatever is created and deleted meanwhile.
 *
 * @throws VaultError `validation_failed` for a cursor that was not made for this list.
 */
export function listByCursor(tools: TokenReading, caller: Caller, listing: TokenListing): Decide {
  const { size = pageSizeDefault } = listing;
  const after = openTokenCursor(caller.tenant, listing);
  return deciding(tools, caller, listing, async (now) => {
    const conditions = conditionsOf(caller, listing.permission, { ...listing, now });
    const limit = size === 0 ? 0 : size + 1;
    const rows = await findTokens(tools.store, conditions, { after: after?.place, limit });
    const page = rows.slice(0, size);
    const next = rows.length > size ? sealTokenCursor(caller.tenant, listing, page) : undefined;
    return { page, pagination: { page_size: size, ...(next !== undefined && { next }) } };
  });
}

/** @throws VaultError `validation_failed` for a cursor that was not made for this list. */
export function listByPage(tools: TokenReading, caller: Caller, listing: NumberedListing): Decide {
  const { size = pageSizeDefault } = listing;
  const after = openTokenCursor(caller.tenant, listing);
  const number = after?.page ?? listing.page ?? 1;
  return deciding(tools, caller, listing, async (now) => {
    const conditions = conditionsOf(caller, listing.permission, { ...listing, now });
    const wanted = after ? { offset: 0, limit: 0 } : { offset: (number - 1) * size, limit: size };
    const { rows, total } = await findTokensAt(tools.store, conditions, wanted);
    const limit = size === 0 ? 0 : size + 1;
    const found = after
      ? await findTokens(tools.store, conditions, { after: after.place, limit })
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

interface Found {
  readonly page: readonly Row<'tokens'>[];
  readonly pagination: object;
}

/** What every list has in common: who may ask, what is shown of each token, and what the log says. */
function deciding(
  tools: TokenReading,
  caller: Caller,
  { permission, filter }: TokenListing,
  find: (now: Instant) => Promise<Found>,
): Decide {
  const operation = permission === 'token:search' ? 'search' : 'list';
  return async () => {
    const now = tools.clock.now();
    if (!containerAllowed(caller, permission, filter)) {
      return refuse(caller, now, { entity: 'token', id: '*', permission });
    }
    const { page, pagination } = await find(now);
    const evaluation = newEvaluation();
    const showing = { rows: page, permission, now, evaluationFor: () => evaluation };
    const { bodies, reads, shown } = await showTokens(tools, caller, showing);
    const listed = entryOf(caller, now, { entity: 'token', id: caller.tenant.id, operation });
    return {
      change: { entries: [listed, ...reads] },
      reply: { status: 200, body: { pagination, data: bodies }, ...fadingReads(shown) },
    };
  };
}

export interface Showing {
  readonly rows: readonly Row<'tokens'>[];
  readonly permission: TokenListing['permission'];
  readonly now: Instant;
  /** For each token: one for them all, unless there is no end to them. */
  readonly evaluationFor: () => Evaluation;
}

export interface Shown {
  readonly bodies: readonly TokenBody[];
  readonly shown: readonly ShownToken[];
  /** One for each token whose data is shown, masked or not: an auditor asks who has seen a token. */
  readonly reads: readonly LogEntry[];
}

/** Tokens as the caller may see them. One on which it does not hold the permission is left out. */
export async function showTokens(
  { onMaskFailure }: TokenReading,
  caller: Caller,
  { rows, permission, now, evaluationFor }: Showing,
): Promise<Shown> {
  const shown = rows.flatMap((row) => {
    const subject = { id: row.token_id, container: row.container };
    const grant = decide(caller.policy, permission, subject);
    return grant ? { row, grant } : [];
  });
  const pause = createPause();
  const bodies: TokenBody[] = [];
  for (const one of shown) {
    await pause();
    const open = () => openData(caller.tenant, one.row, now);
    bodies.push(viewToken({ ...one, open, evaluation: evaluationFor(), onMaskFailure }));
  }
  const reads = bodies
    .filter((body) => body['data'] !== undefined)
    .map(({ id }) => entryOf(caller, now, { entity: 'token', id, operation: 'read' }));
  return { bodies, reads, shown };
}

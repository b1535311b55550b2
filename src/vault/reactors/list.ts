/** Listing reactors, newest first. */
import { sealCursor } from '../../crypto/cursor.ts';
import { parseUuid, type ReactorId } from '../../lib/ids.ts';
import type { Caller } from '../../rules/caller.ts';
import { entryOf } from '../../rules/log-entries.ts';
import { paginationOf, positionOfCursor } from '../../rules/offset-page.ts';
import type { Decide } from '../../rules/operation.ts';
import {
  type ReactorFilter,
  type ReactorPosition,
  reactorCount,
  reactorPage,
} from '../../store/queries/reactors.ts';
import type { ReactorReading } from './create.ts';
import { viewReactor } from './view.ts';

export interface ReactorQuery {
  readonly id?: readonly string[];
  /** `*` stands for any characters; the case of letters does not matter. */
  readonly name?: string;
  /** From 1. */
  readonly page?: number;
  readonly size?: number;
  /** Cursor of an earlier response; replaces `page`. */
  readonly start?: string;
}

const sizeDefault = 20;
const route = 'GET /reactors';

/**
 * From the decision `integrity` when a reactor of the page was altered.
 * @throws VaultError `validation_failed` for an invalid cursor.
 */
export function listReactors(
  { store, clock }: ReactorReading,
  caller: Caller,
  query: ReactorQuery,
): Decide {
  const { tenant } = caller;
  const cursorKey = tenant.keyring.secret('cursor');
  const { page = 1, size = sizeDefault } = query;
  const filter: ReactorFilter = {
    tenant: tenant.id,
    ids: query.id?.flatMap((id) => parseUuid<ReactorId>(id) ?? []),
    name: query.name,
  };
  const after = positionOfCursor<ReactorPosition>(cursorKey, route, query.start);
  return async () => {
    const isEmpty = filter.ids?.length === 0;
    const [counted] = isEmpty ? [] : await store.select(reactorCount(filter));
    const total = counted?.count ?? 0;
    // One row more than the page holds, which says whether another page follows.
    const wanted = { ...filter, limit: size + 1, after, skip: (page - 1) * size };
    const rows = isEmpty ? [] : await store.select(reactorPage(wanted));
    const shown = rows.slice(0, size);
    const last = shown.at(-1);
    const position: ReactorPosition | undefined = last && [last.created_at, last.reactor_id];
    const next = rows.length > size && position && sealCursor(cursorKey, route, position);
    const fact = { entity: 'reactor', id: tenant.id, operation: 'list' } as const;
    return {
      change: { entries: [entryOf(caller, clock.now(), fact)] },
      reply: {
        status: 200,
        body: {
          pagination: paginationOf({ total, page, size, next }),
          data: shown.map((row) => viewReactor(caller, row)),
        },
      },
    };
  };
}

/** Listing applications, newest first. */
import { sealCursor } from '../../crypto/cursor.ts';
import { type ApplicationId, parseUuid } from '../../lib/ids.ts';
import type { Actor } from '../../rules/caller.ts';
import { entryOf } from '../../rules/log-entries.ts';
import { paginationOf, positionOfCursor } from '../../rules/offset-page.ts';
import type { Decide } from '../../rules/operation.ts';
import type { ApplicationKind } from '../../rules/permissions.ts';
import { requireProven } from '../../rules/proven-row.ts';
import {
  type ApplicationFilter,
  type ApplicationPosition,
  applicationCount,
  applicationPage,
} from '../../store/queries/applications.ts';
import type { Row } from '../../store/tables.ts';
import { provenKeysOf } from './queries.ts';
import type { ApplicationReading } from './read.ts';
import { viewApplication } from './view.ts';

export interface ApplicationQuery {
  readonly id?: readonly string[];
  readonly type?: readonly ApplicationKind[];
  /** From 1. */
  readonly page?: number;
  readonly size?: number;
  /** Cursor of an earlier response; replaces `page`. */
  readonly start?: string;
}

const sizeDefault = 20;
const route = 'GET /applications';

/**
 * From the decision `integrity` when an application or key of the page was altered.
 * @throws VaultError `validation_failed` for an invalid cursor.
 */
export function listApplications(
  { store, clock }: ApplicationReading,
  actor: Actor,
  query: ApplicationQuery,
): Decide {
  const { tenant } = actor;
  const cursorKey = tenant.keyring.secret('cursor');
  const { page = 1, size = sizeDefault } = query;
  const filter: ApplicationFilter = {
    tenant: tenant.id,
    ids: query.id?.flatMap((id) => parseUuid<ApplicationId>(id) ?? []),
    kinds: query.type,
  };
  const after = positionOfCursor<ApplicationPosition>(cursorKey, route, query.start);
  return async () => {
    const isEmpty = filter.ids?.length === 0;
    const [counted] = isEmpty ? [] : await store.select(applicationCount(filter));
    const total = counted?.count ?? 0;
    // One row more than the page holds, which says whether another page follows.
    const wanted = { ...filter, limit: size + 1, after, skip: (page - 1) * size };
    const rows = isEmpty ? [] : await store.select(applicationPage(wanted));
    const shown = rows.slice(0, size).map((row) => requireProven(tenant, 'applications', row));
    const last = shown.at(-1);
    const next = rows.length > size && last && sealCursor(cursorKey, route, positionOf(last));
    const keys = await provenKeysOf(store, tenant, shown);
    return {
      change: {
        entries: [
          entryOf(actor, clock.now(), { entity: 'application', id: tenant.id, operation: 'list' }),
        ],
      },
      reply: {
        status: 200,
        body: {
          pagination: paginationOf({ total, page, size, next }),
          data: shown.map((row) => viewApplication(row, keys)),
        },
      },
    };
  };
}

function positionOf(row: Row<'applications'>): ApplicationPosition {
  return [row.created_at, row.application_id];
}

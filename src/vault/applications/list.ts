/** Listing applications, newest first. */
import { openCursor, sealCursor } from '../../crypto/cursor.ts';
import type { Instant } from '../../lib/clock.ts';
import { invalid } from '../../lib/errors.ts';
import { type ApplicationId, parseUuid } from '../../lib/ids.ts';
import type { Actor } from '../../rules/caller.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';
import type { ApplicationKind } from '../../rules/permissions.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import { keysOf } from './queries.ts';
import type { ApplicationReading } from './read.ts';
import { viewApplication } from './view.ts';

export interface ApplicationQuery {
  readonly id?: readonly string[];
  readonly type?: readonly ApplicationKind[];
  /** From 1. */
  readonly page?: number;
  readonly size?: number;
  /** Cursor of an earlier answer; takes the place of `page`. */
  readonly start?: string;
}

const sizeDefault = 20;
const route = 'GET /applications';

/** Newest first, ties by id. */
type ApplicationPosition = readonly [at: Instant, id: ApplicationId];

/** @throws VaultError `validation_failed` for a cursor that is none. */
export function listApplications(
  { store, clock }: ApplicationReading,
  actor: Actor,
  query: ApplicationQuery,
): Decide {
  const { tenant } = actor;
  const cursorKey = tenant.keyring.secret('cursor');
  const { page = 1, size = sizeDefault } = query;
  const filter: ApplicationFilter = {
    ids: query.id?.flatMap((id) => parseUuid<ApplicationId>(id) ?? []),
    kinds: query.type,
  };
  const after = query.start === undefined ? undefined : readCursor(cursorKey, query.start);
  return async () => {
    const total = await countApplications(store, tenant, filter);
    const rows = await selectApplications(store, tenant, { filter, page, size, after });
    const shown = rows.slice(0, size);
    const last = shown.at(-1);
    const next = rows.length > size && last && sealCursor(cursorKey, route, positionOf(last));
    const keys = await keysOf(
      store,
      tenant.id,
      shown.map((row) => row.application_id),
    );
    return {
      change: {
        entries: [
          entryOf(actor, clock.now(), { entity: 'application', id: tenant.id, operation: 'list' }),
        ],
      },
      reply: {
        status: 200,
        body: {
          pagination: {
            total_items: total,
            page_number: page,
            page_size: size,
            total_pages: size === 0 ? 0 : Math.ceil(total / size),
            ...(next && { next }),
          },
          data: shown.map((row) => viewApplication(row, keys)),
        },
      },
    };
  };
}

interface ApplicationFilter {
  readonly ids: readonly ApplicationId[] | undefined;
  readonly kinds: readonly ApplicationKind[] | undefined;
}

async function countApplications(
  store: Store,
  tenant: Tenant,
  { ids, kinds }: ApplicationFilter,
): Promise<number> {
  if (ids?.length === 0) return 0;
  const [counted] = await store.select((db) => {
    let select = db
      .selectFrom('applications')
      .where('tenant_id', '=', tenant.id)
      .select((eb) => eb.fn.countAll<number>().as('count'));
    if (ids) select = select.where('application_id', 'in', ids);
    if (kinds) select = select.where('type', 'in', kinds);
    return select;
  });
  return counted?.count ?? 0;
}

interface ApplicationPage {
  readonly filter: ApplicationFilter;
  readonly page: number;
  readonly size: number;
  readonly after: ApplicationPosition | undefined;
}

/** One row more than the page holds, which says whether another page follows. */
async function selectApplications(
  store: Store,
  tenant: Tenant,
  { filter: { ids, kinds }, page, size, after }: ApplicationPage,
): Promise<Row<'applications'>[]> {
  if (ids?.length === 0) return [];
  return store.select((db) => {
    let select = db
      .selectFrom('applications')
      .selectAll()
      .where('tenant_id', '=', tenant.id)
      .orderBy('created_at', 'desc')
      .orderBy('application_id', 'desc')
      .limit(size + 1);
    if (ids) select = select.where('application_id', 'in', ids);
    if (kinds) select = select.where('type', 'in', kinds);
    if (after === undefined) return select.offset((page - 1) * size);
    return select.where(({ eb, refTuple, tuple }) =>
      eb(refTuple('created_at', 'application_id'), '<', tuple(...after)),
    );
  });
}

function positionOf(row: Row<'applications'>): ApplicationPosition {
  return [row.created_at, row.application_id];
}

function readCursor(key: Parameters<typeof openCursor>[0], text: string): ApplicationPosition {
  const position = openCursor(key, route, text);
  if (position === undefined) throw invalid('start', 'must be the cursor of an earlier answer');
  return position as unknown as ApplicationPosition;
}

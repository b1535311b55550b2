/** The result of an asynchronous call, for its caller, and the logs of calls. */

import { parseInstant } from '../../base/clock.ts';
import { formatTimestamp } from '../../base/dates.ts';
import { invalid, VaultError } from '../../base/errors.ts';
import { parseUuid, type ReactorRunId } from '../../base/ids.ts';
import { openCursor, sealCursor } from '../../keys/cursor.ts';
import { type Caller, payerOf } from '../../rules/caller.ts';
import { detailed, entryOf } from '../../rules/log-entries.ts';
import { openerFor, openerOf } from '../../rules/openings.ts';
import type { Decide } from '../../rules/operation.ts';
import { rowOf } from '../../rules/stored-resource.ts';
import {
  type RunOfPage,
  type RunPage,
  type RunPosition,
  runPage,
} from '../../store/queries/reactors.ts';
import type { Query } from '../../store/store.ts';
import type { ReactorReading } from '../resource.ts';
import { errorOfProblem, openRun } from './run-row.ts';

export interface ResultPath {
  readonly id: string;
  readonly requestId: string;
}

/**
 * The decision throws `not_found` until the result exists, and for every caller except the application or session
 * that made the call; it also throws the failure of the code.
 */
export function readResult(tools: ReactorReading, caller: Caller, path: ResultPath): Decide {
  const { store, clock } = tools;
  const { tenant } = caller;
  return async () => {
    const { reactor_id } = await rowOf(store, 'reactors', { tenant, id: path.id });
    const run_id = parseUuid<ReactorRunId>(path.requestId);
    const found = run_id && (await store.get('reactor_runs', { tenant_id: tenant.id, run_id }));
    const now = clock.now();
    if (found?.reactor_id !== reactor_id || found.due_at !== null || found.expires_at <= now) {
      throw noResult();
    }
    const { row, body } = openRun(openerOf('match results', tenant), found);
    const { caller: by } = body.reveal();
    const isOwn = by.application === caller.application && by.session === (caller.session ?? null);
    if (!isOwn) throw noResult();
    const { result } = openRun(openerFor(caller, 'own response'), row).body.reveal();
    if (result === undefined) throw noResult();
    const fact = { entity: 'reactor', id: reactor_id, operation: 'read result' } as const;
    const change = { entries: [detailed(entryOf(caller, now, fact), row.run_id)] } as const;
    if ('problem' in result) return { change, refusal: errorOfProblem(result.problem) };
    return { change, reply: result.reply };
  };
}

function noResult(): VaultError {
  return new VaultError('not_found', {
    public: 'There is no result of such a request, or not yet.',
  });
}

export interface CallLogQuery {
  readonly size?: number;
  /** Cursor of an earlier response. */
  readonly start?: string;
}

const sizeDefault = 20;

interface KeptList {
  readonly route: string;
  readonly kept: RunPage['kept'];
  readonly operation: 'read logs' | 'read versions';
  readonly view: (reader: Caller, found: RunOfPage) => object;
}

const logs: KeptList = {
  route: 'GET /reactors/:id/logs',
  kept: 'calls',
  operation: 'read logs',
  view: viewLog,
};

const versions: KeptList = {
  route: 'GET /reactors/:id/versions',
  kept: 'versions',
  operation: 'read versions',
  view: viewVersion,
};

interface KeptRequest {
  readonly id: string;
  readonly query: CallLogQuery;
}

/** The decision throws `not_found`, or `integrity` if a call on the page was altered. */
export function readReactorLogs(
  tools: ReactorReading,
  caller: Caller,
  request: KeptRequest,
): Decide {
  return readKept(tools, caller, { ...request, list: logs });
}

/** The code that the reactor had before, newest first. Throws the same. */
export function readReactorVersions(
  tools: ReactorReading,
  caller: Caller,
  request: KeptRequest,
): Decide {
  return readKept(tools, caller, { ...request, list: versions });
}

function readKept(
  tools: ReactorReading,
  caller: Caller,
  { id, query, list }: KeptRequest & { readonly list: KeptList },
): Decide {
  const { store, clock } = tools;
  const { tenant } = caller;
  const cursorKey = tenant.keyring.secret('cursor');
  const { size = sizeDefault, start } = query;
  const { route, kept, operation, view } = list;
  const after = start === undefined ? undefined : openCursor(cursorKey, route, start);
  if (start !== undefined && after === undefined) {
    throw invalid('start', 'must be the cursor of an earlier response');
  }
  return async () => {
    const { reactor_id: reactor } = await rowOf(store, 'reactors', { tenant, id });
    const now = clock.now();
    const position = after as unknown as RunPosition | undefined;
    const page = { tenant: tenant.id, reactor, now, after: position, kept };
    const read = (query: Query<RunOfPage>) => store.scan(query, payerOf(caller));
    const { shown, hasMore } = await pageOf(read, page, size);
    const last = shown.at(-1);
    const next = hasMore && last && sealCursor(cursorKey, route, positionOf(last));
    const fact = { entity: 'reactor', id: reactor, operation } as const;
    return {
      change: { entries: [entryOf(caller, now, fact)] },
      reply: {
        status: 200,
        body: {
          pagination: { page_size: size, ...(next && { next }) },
          data: shown.map((row) => view(caller, row)),
        },
      },
    };
  };
}

/** Bounds a page by size, because the row of each call includes its result, which can take a megabyte. */
const pageBytesMax = 4 * 1024 * 1024;
const rowsAtOnce = 4;

interface PageOfRuns {
  readonly shown: readonly RunOfPage[];
  /** Whether another page follows. */
  readonly hasMore: boolean;
}

async function pageOf(
  read: (query: Query<RunOfPage>) => Promise<RunOfPage[]>,
  page: Omit<RunPage, 'limit'>,
  size: number,
): Promise<PageOfRuns> {
  const shown: RunOfPage[] = [];
  let { after } = page;
  let bytes = 0;
  while (size > 0) {
    const limit = Math.min(rowsAtOnce, size + 1 - shown.length);
    const rows = await read(runPage({ ...page, after, limit }));
    for (const row of rows) {
      bytes += row.bytes;
      const isFull = shown.length === size || (shown.length > 0 && bytes > pageBytesMax);
      if (isFull) return { shown, hasMore: true };
      shown.push(row);
      after = positionOf(row);
    }
    if (rows.length < limit) break;
  }
  return { shown, hasMore: false };
}

const positionOf = ({ created_at, run_id }: RunOfPage): RunPosition => [created_at, run_id];

function viewLog(reader: Caller, found: RunOfPage): object {
  const { row, body } = openRun(openerFor(reader, 'reactor:read'), found);
  const { kind, isFailed, log, caller } = body.reveal();
  return {
    request_id: row.run_id,
    invocation_type: kind,
    outcome: isFailed ? 'failed' : 'completed',
    trace_id: caller.traceId,
    created_at: formatTimestamp(row.created_at),
    lines: log.map(({ level, at, text }) => ({
      level,
      at: formatTimestamp(parseInstant(at)),
      text,
    })),
  };
}

function viewVersion(reader: Caller, found: RunOfPage): object {
  const { row, body } = openRun(openerFor(reader, 'reactor:read'), found);
  const { code = '', caller } = body.reveal();
  return {
    id: row.run_id,
    code,
    replaced_by: caller.application,
    replaced_at: formatTimestamp(row.created_at),
  };
}

/**
 * What goes from the disk once it has expired: one function for each kind of data. No reader sees it since it expired.
 * A row that was altered stays, because its expiry may be what was altered.
 */

import { minute } from '../../base/clock.ts';
import { rowWithoutExpired } from '../../http/idempotency/stored-reply.ts';
import { systemEntry } from '../../rules/log-entries.ts';
import { provenRows } from '../../rules/proven-row.ts';
import type { LogEntry } from '../../store/log-chain/entries.ts';
import { keysWithHashes } from '../../store/queries/applications.ts';
import { rowsDue, type SizedDue, sizedDue } from '../../store/queries/tenant-rows.ts';
import type { RowFromStore } from '../../store/stored-row.ts';
import type { Row } from '../../store/tables.ts';
import { removedToken, rowWithoutCode } from '../../tokens/contents/sealed-row.ts';
import { intentWithoutCode } from '../../tokens/intents/row.ts';
import { type BatchRun, type BatchWork, type JobTools, keysMax, workOff } from './batches.ts';
import { createRowOpening } from './opened-rows.ts';
import { batchMax } from './pace.ts';
import type { Job } from './runner.ts';

/** All of it is off the disk within the hour: the waiting times here add up to far less. */
export function expiringJobs(tools: JobTools): readonly Job[] {
  const job = <R>(
    name: string,
    everyMs: number,
    workOf: (tools: JobTools) => BatchWork<R>,
  ): Job => ({
    name,
    everyMs,
    run: (stopping) => workOff(tools, stopping, workOf(tools)),
    removesExpired: true,
  });
  return [
    job('expire tokens', minute, expiredTokens),
    job('expire card codes', minute, expiredCodes),
    job('expire token intents', minute, expiredIntents),
    job('expire card codes of token intents', minute, expiredIntentCodes),
    job('forget replies', minute, expiredReplies),
    job('remove results of reactors', 10 * minute, expiredRuns),
    job('remove sessions', 10 * minute, expiredSessions),
    job('remove expired encryption keys', 10 * minute, expiredClientKeys),
    job('remove approvals', 10 * minute, expiredApprovals),
  ];
}

/** One for each row, in the commit that removes it. */
function entriesOf(
  { tenant, now: at }: BatchRun,
  entity: 'token' | 'token_intent' | 'session' | 'key' | 'approval',
  ids: readonly string[],
  containers: readonly string[] = [],
): readonly LogEntry[] {
  return ids.map((id, index) => {
    const container = containers[index];
    return systemEntry({ tenant: tenant.id, at, entity, id, container, operation: 'expire' });
  });
}

/** One for each row, in the commit that removes its card code. */
function codeEntriesOf(
  { tenant, now: at }: BatchRun,
  entity: 'token' | 'token_intent',
  ids: readonly string[],
): readonly LogEntry[] {
  const operation = 'expire property';
  return ids.map((id) => systemEntry({ tenant: tenant.id, at, entity, id, operation }));
}

/** One for all of a batch. */
function entryOfAll(
  { tenant, now: at }: BatchRun,
  entity: 'idempotency_key' | 'reactor_run',
): LogEntry {
  return systemEntry({ tenant: tenant.id, at, entity, id: '*', operation: 'expire' });
}

function expiredTokens({ store }: JobTools): BatchWork<SizedDue<'tokens'>> {
  const openRows = createRowOpening(store);
  return {
    due: { table: 'tokens', column: 'expires_at' },
    rowsMax: keysMax,
    find: (due) => store.scan(sizedDue('tokens', 'expires_at', due), 'vault'),
    decide: async (found, run) => {
      const { done: tokens, absent } = await openRows(run, {
        table: 'tokens',
        found,
        removed: removedToken,
      });
      const ids = tokens.map(({ token_id }) => token_id);
      const containers = tokens.map(({ container }) => container);
      const entries = entriesOf(run, 'token', ids, containers);
      return { change: { remove: { tokens } }, entries, count: tokens.length, absent };
    },
  };
}

function expiredIntents({ store }: JobTools): BatchWork<SizedDue<'token_intents'>> {
  const openRows = createRowOpening(store);
  return {
    due: { table: 'token_intents', column: 'expires_at' },
    rowsMax: keysMax,
    find: (due) => store.scan(sizedDue('token_intents', 'expires_at', due), 'vault'),
    decide: async (found, run) => {
      const { done: token_intents, absent } = await openRows(run, {
        table: 'token_intents',
        found,
        removed: (row) => row,
      });
      const ids = token_intents.map(({ token_intent_id }) => token_intent_id);
      const entries = entriesOf(run, 'token_intent', ids);
      return {
        change: { remove: { token_intents } },
        entries,
        count: token_intents.length,
        absent,
      };
    },
  };
}

/**
 * The data is sealed again without its code, from which neither fingerprint nor search terms are made.
 * It does not count as a change of the token: `modified_at` and `modified_by` stay.
 */
function expiredCodes({ store, random }: JobTools): BatchWork<RowFromStore<'tokens'>> {
  return {
    due: { table: 'tokens', column: 'code_expires_at' },
    rowsMax: batchMax,
    find: (due) => store.scan(rowsDue('tokens', 'code_expires_at', due), 'vault'),
    decide: async (rows, run) => {
      const { tenant, now } = run;
      const tokens = rows.flatMap(
        (row) => tenant.quarantine.read(() => rowWithoutCode(tenant, row, { now, random })) ?? [],
      );
      const ids = tokens.map(({ token_id }) => token_id);
      const entries = codeEntriesOf(run, 'token', ids);
      return { change: { replace: { tokens } }, entries, count: tokens.length };
    },
  };
}

function expiredIntentCodes({ store, random }: JobTools): BatchWork<RowFromStore<'token_intents'>> {
  return {
    due: { table: 'token_intents', column: 'code_expires_at' },
    rowsMax: batchMax,
    find: (due) => store.scan(rowsDue('token_intents', 'code_expires_at', due), 'vault'),
    decide: async (rows, run) => {
      const { tenant } = run;
      const token_intents = rows.flatMap(
        (row) => tenant.quarantine.read(() => intentWithoutCode(tenant, row, random)) ?? [],
      );
      const ids = token_intents.map(({ token_intent_id }) => token_intent_id);
      const entries = codeEntriesOf(run, 'token_intent', ids);
      return { change: { replace: { token_intents } }, entries, count: token_intents.length };
    },
  };
}

/** Responses stored under idempotency keys: whole after a day, in part when data expires. */
function expiredReplies({ store, random }: JobTools): BatchWork<Row<'replies'>> {
  return {
    due: { table: 'replies', column: 'next_expiry_at' },
    rowsMax: batchMax,
    find: (due) => store.scan(rowsDue('replies', 'next_expiry_at', due), 'vault'),
    decide: async (rows, run) => {
      const { tenant, now } = run;
      const opened = rows.flatMap(
        (row) =>
          tenant.quarantine.read(() => ({
            row,
            current: rowWithoutExpired({ tenant, key: row, now, random }, row),
          })) ?? [],
      );
      const gone = opened.filter(({ current }) => current === undefined);
      return {
        change: {
          remove: { replies: gone.map(({ row }) => row) },
          replace: { replies: opened.flatMap(({ current }) => current ?? []) },
        },
        // The keys are the callers' own and name nothing of the vault.
        entries: opened.length === 0 ? [] : [entryOfAll(run, 'idempotency_key')],
        count: opened.length,
      };
    },
  };
}

/** Results and logs of calls, a day after the calls. An altered row goes too, because no caller could read it. */
function expiredRuns({ store }: JobTools): BatchWork<RowFromStore<'reactor_runs'>> {
  return {
    due: { table: 'reactor_runs', column: 'expires_at' },
    rowsMax: batchMax,
    find: (due) => store.select(rowsDue('reactor_runs', 'expires_at', due)),
    decide: async (reactor_runs, run) => ({
      change: { remove: { reactor_runs } },
      entries: [entryOfAll(run, 'reactor_run')],
      count: reactor_runs.length,
    }),
  };
}

/** With their keys. An altered session might claim another session's key as its own. */
function expiredSessions({ store }: JobTools): BatchWork<RowFromStore<'sessions'>> {
  return {
    due: { table: 'sessions', column: 'expires_at' },
    rowsMax: batchMax,
    find: (due) => store.select(rowsDue('sessions', 'expires_at', due)),
    decide: async (found, run) => {
      const { tenant } = run;
      const { rows: sessions } = provenRows(tenant, 'sessions', found);
      const hashes = sessions.map(({ key_hash }) => key_hash);
      const api_keys =
        hashes.length === 0 ? [] : await store.select(keysWithHashes(tenant.id, hashes));
      const ids = sessions.map(({ session_id }) => session_id);
      const entries = entriesOf(run, 'session', ids);
      return { change: { remove: { sessions, api_keys } }, entries, count: sessions.length };
    },
  };
}

/** Encryption keys of clients. */
function expiredClientKeys({ store }: JobTools): BatchWork<RowFromStore<'client_keys'>> {
  return {
    due: { table: 'client_keys', column: 'expires_at' },
    rowsMax: batchMax,
    find: (due) => store.select(rowsDue('client_keys', 'expires_at', due)),
    decide: async (found, run) => {
      const { rows: client_keys } = provenRows(run.tenant, 'client_keys', found);
      const ids = client_keys.map(({ client_key_id }) => client_key_id);
      const entries = entriesOf(run, 'key', ids);
      return { change: { remove: { client_keys } }, entries, count: client_keys.length };
    },
  };
}

/** What was decided a day ago, and what waited on a server that stopped without a word. */
function expiredApprovals({ store }: JobTools): BatchWork<RowFromStore<'approvals'>> {
  return {
    due: { table: 'approvals', column: 'expires_at' },
    rowsMax: batchMax,
    find: (due) => store.select(rowsDue('approvals', 'expires_at', due)),
    decide: async (found, run) => {
      const { rows: approvals } = provenRows(run.tenant, 'approvals', found);
      const ids = approvals.map(({ approval_id }) => approval_id);
      const entries = entriesOf(run, 'approval', ids);
      return { change: { remove: { approvals } }, entries, count: approvals.length };
    },
  };
}

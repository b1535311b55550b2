/** Claims a waiting call, so that only this server runs it. */

import { type Instant, instantAfter } from '../../base/clock.ts';
import { integrityError, VaultError } from '../../base/errors.ts';
import { alteredOutside, detailed, systemEntry } from '../../rules/log-entries.ts';
import { openerOf } from '../../rules/openings.ts';
import type { Tenant, Tenants } from '../../rules/tenant.ts';
import type { LogEntry } from '../../store/log-chain/entries.ts';
import type { Unproven } from '../../store/stored-row.ts';
import type { Row } from '../../store/tables.ts';
import { type CalledReactor, calledReactor, leaseMsOf } from './called-reactor.ts';
import type { ReactorCalling } from './react.ts';
import { openRun, type RunBody, runRow } from './run-row.ts';
import { isWrittenBack } from './written-back.ts';

export interface WaitingRunTools extends ReactorCalling {
  readonly tenants: Tenants;
  /**
   * Called if the attempt fails. Unless the call was removed, it is retried after a delay or once its lease has
   * ended.
   */
  readonly onFailure: (error: unknown) => void;
}

export interface TakenRun {
  readonly tenant: Tenant;
  /** The row in the version that marks the call as running. */
  readonly row: Row<'reactor_runs'>;
  readonly body: RunBody;
  readonly reactor: CalledReactor;
}

/** `undefined` if another server was faster, or if the call cannot run and was removed. */
export async function take(
  tools: WaitingRunTools,
  tenant: Tenant,
  found: Unproven<'reactor_runs'>,
): Promise<TakenRun | undefined> {
  const { store, clock, random } = tools;
  const opened = await openedRun(tools, tenant, found);
  if (opened === undefined) return undefined;
  const { row, reactor } = opened;
  const now = clock.now();
  const body = { ...opened.body, attempts: opened.body.attempts + 1 };
  const columns = {
    ...row,
    version: row.version + 1,
    due_at: instantAfter(now, leaseMsOf(reactor)),
  };
  const taken = runRow({ tenant, random }, columns, body);
  const entry = entryOfRun(now, { row, operation: 'start' });
  const { conflict } = await store.commit({
    replace: { reactor_runs: [taken] },
    entries: [entry],
  });
  return conflict === undefined ? { tenant, row: taken, body, reactor } : undefined;
}

/**
 * If a row was altered in the database, was restored to an older version, or has waited for a day, the vault removes
 * it and records that in the log. Such a row must not block other calls.
 */
async function openedRun(
  { store, clock, onFailure }: WaitingRunTools,
  tenant: Tenant,
  found: Unproven<'reactor_runs'>,
): Promise<Omit<TakenRun, 'tenant'> | undefined> {
  try {
    const { row, body: secret } = openRun(openerOf('run reactor calls', tenant), found);
    const body = secret.reveal();
    if (row.expires_at <= clock.now()) throw new VaultError('not_found', { public: expired });
    const reactor = await calledReactor(store, tenant, row.reactor_id);
    if (await isWrittenBack(store, tenant, row)) throw writtenBack(row);
    return { row, body, reactor };
  } catch (error) {
    const isGone = error instanceof VaultError && /^(?:integrity|not_found)$/.test(error.code);
    if (!isGone) throw error;
    const isAltered = error.code === 'integrity';
    if (isAltered) onFailure(error);
    const entry = entryOfRun(clock.now(), { row: found, operation: 'fail' });
    const failed = { ...entry, result: 'failed' } as const;
    await store.commit({
      remove: { reactor_runs: [found] },
      entries: [isAltered ? detailed(failed, `it was ${alteredOutside}`) : failed],
    });
    return undefined;
  }
}

function writtenBack({ run_id: id }: Row<'reactor_runs'>): VaultError {
  return integrityError(
    `an older version of the reactor_run ${id} was written back outside the vault`,
    { altered: { entity: 'reactor_run', id } },
  );
}

const expired = 'The call has waited for too long.';

interface RunFact {
  readonly row: Pick<Row<'reactor_runs'>, 'tenant_id' | 'run_id' | 'reactor_id'>;
  readonly operation: 'start' | 'interrupt' | 'end' | 'fail';
}

/** An entry about the row itself. It records the row's version: see `written-back.ts`. */
export function entryOfRun(at: Instant, { row, operation }: RunFact): LogEntry {
  const { tenant_id: tenant, run_id: id, reactor_id } = row;
  const entry = systemEntry({ tenant, at, entity: 'reactor_run', id, operation });
  return detailed(entry, `reactor ${reactor_id}`);
}

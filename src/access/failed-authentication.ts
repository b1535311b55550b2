/** Failed authentication is logged, but a client without a key cannot fill the disk with it. */
import { type Clock, minute } from '../base/clock.ts';
import { networkOf } from '../base/network.ts';
import type { Log } from '../base/telemetry/log.ts';
import { failedAuthenticationEntry, type RefusedCredential } from '../rules/anonymous-entries.ts';
import type { Origin } from '../rules/caller.ts';
import type { Store } from '../store/store.ts';

/** The row of a key is not as the vault wrote it: an attacker has write access to the database. */
export type KeyFlaw = 'altered';

/** @param key that was presented, or the session of the console, or the person, if it is stored. */
export type OnFailedAuthentication = (
  origin: Origin,
  key: RefusedCredential | undefined,
  flaw?: KeyFlaw,
) => Promise<void>;

/** Which key was presented: an unknown one, that of a deleted or expired holder, or an altered one. */
type PresentedKey = 'nothing stored' | 'stored key' | KeyFlaw;

/** Failures of one kind in a window. */
interface LoggedFailures {
  count: number;
  readonly bySource: Map<string, number>;
}

/**
 * Failures of each kind that are logged one by one in each window; the rest are logged as a count.
 * Each kind has its own limit, or an attacker could hide the use of an altered key behind made-up ones.
 */
export const windowMs = minute;
export const loggedPerSourceMax = 10;
export const loggedMax = 100;

export interface FailedAuthenticationOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Each failure goes to the operator's log. It also goes to the tenant's log if its key belonged to the
 * tenant: the key of an expired session, or of a deleted application. An address identifies the
 * client only as well as the network does.
 */
export function createFailedAuthentication({
  store,
  clock,
  log,
}: FailedAuthenticationOptions): OnFailedAuthentication {
  let until = 0;
  let unlogged = 0;
  let logged = new Map<PresentedKey, LoggedFailures>();

  function begin(now: number): void {
    if (unlogged > 0) log.warn('more requests failed to authenticate', { count: unlogged });
    until = now + windowMs;
    unlogged = 0;
    logged = new Map();
  }

  return async (origin, key, flaw) => {
    const now = clock.now();
    if (now >= until) begin(now);
    const source = networkOf(origin.address);
    const presented = flaw ?? (key ? 'stored key' : 'nothing stored');
    const before = logged.get(presented) ?? { count: 0, bySource: new Map() };
    const count = before.bySource.get(source) ?? 0;
    if (count >= loggedPerSourceMax || before.count >= loggedMax) {
      unlogged++;
      return;
    }
    // No more sources than failures that are logged: the map cannot outgrow its window.
    before.bySource.set(source, count + 1);
    before.count++;
    logged.set(presented, before);
    const { address, traceId } = origin;
    const tenant = key && { tenant_id: key.tenant_id };
    const fields = { address, trace_id: traceId, ...tenant };
    if (flaw === undefined) log.warn('a request failed to authenticate', fields);
    else log.error('a stored key was altered outside the vault and is refused', fields);
    if (key)
      await store.commit({ entries: [failedAuthenticationEntry(origin, now, { key, flaw })] });
  };
}

/** The reactor of a call, as it is now. */

import { minute, second } from '../../base/clock.ts';
import type { ReactorId } from '../../base/ids.ts';
import { openerOf } from '../../rules/openings.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Store } from '../../store/store.ts';
import { timeoutMsOf } from '../code/code-runtime.ts';
import type { ReactorDefinition } from '../definition.ts';
import { openReactor, reactorOf } from '../resource.ts';
import { timeoutMsMaxAsync } from '../sandbox/limits.ts';

export interface CalledReactor {
  readonly id: ReactorId;
  readonly name: string;
  readonly definition: ReactorDefinition;
}

/** @throws VaultError `not_found`, or `integrity` when the reactor was altered. */
export async function calledReactor(
  store: Store,
  tenant: Tenant,
  id: string,
): Promise<CalledReactor> {
  const row = await reactorOf(store, tenant.id, id);
  const { reactor_id, name } = row;
  const opener = openerOf('load reactors', tenant);
  return { id: reactor_id, name, definition: openReactor(opener, row).reveal() };
}

/** What nobody waits for may take longer, unless the runtime says otherwise. */
const asyncTimeoutMsDefault = 5 * minute;

export function timeoutMsOfCall(
  { definition: { runtime } }: CalledReactor,
  kind: 'sync' | 'async',
): number {
  const isLong = kind === 'async' && runtime.image === 'node-bt';
  return isLong ? timeoutMsOf(runtime, asyncTimeoutMsDefault) : timeoutMsOf(runtime);
}

/** After the time limit of the code, and before another server may run it as well. */
const leaseMarginMs = 30 * second;

/** The longest that a call which was begun is left to its server. */
export const leaseMsMax = timeoutMsMaxAsync + leaseMarginMs;

export const leaseMsOf = (reactor: CalledReactor): number =>
  timeoutMsOfCall(reactor, 'async') + leaseMarginMs;

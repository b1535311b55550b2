/** The current state of the reactor that a request calls. */

import { minute, second } from '../../base/clock.ts';
import type { ReactorId } from '../../base/ids.ts';
import { openerOf } from '../../rules/openings.ts';
import { rowOf } from '../../rules/stored-resource.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Store } from '../../store/store.ts';
import { timeoutMsOf } from '../code/code-runtime.ts';
import type { ReactorDefinition } from '../definition.ts';
import { openReactor } from '../resource.ts';
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
  const row = await rowOf(store, 'reactors', { tenant, id });
  const { reactor_id, name } = row;
  const opener = openerOf('load reactors', tenant);
  return { id: reactor_id, name, definition: openReactor(opener, row).reveal() };
}

/** The default for asynchronous calls. It is longer because no client waits for the response. */
const asyncTimeoutMsDefault = 5 * minute;

export function timeoutMsOfCall(
  { definition: { runtime } }: CalledReactor,
  kind: 'sync' | 'async',
): number {
  const isLong = kind === 'async' && runtime.image === 'node-bt';
  return isLong ? timeoutMsOf(runtime, asyncTimeoutMsDefault) : timeoutMsOf(runtime);
}

/** The time between the end of the code's time limit and the moment when another server may run the call. */
const leaseMarginMs = 30 * second;

/** The longest time for which one server owns a call that has begun. */
export const leaseMsMax = timeoutMsMaxAsync + leaseMarginMs;

export const leaseMsOf = (reactor: CalledReactor): number =>
  timeoutMsOfCall(reactor, 'async') + leaseMarginMs;

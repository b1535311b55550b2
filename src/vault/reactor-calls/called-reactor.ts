/** The reactor of a call, as it is now. */
import { second } from '../../lib/clock.ts';
import type { ReactorId } from '../../lib/ids.ts';
import { timeoutSecondsDefault } from '../../rules/code-runtime.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Store } from '../../store/store.ts';
import type { ReactorDefinition } from '../reactors/definition.ts';
import { reactorOf } from '../reactors/queries.ts';
import { openReactor } from '../reactors/row.ts';

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
  return { id: reactor_id, name, definition: openReactor(tenant, row).reveal() };
}

/** What nobody waits for may take longer: five minutes unless its runtime says otherwise. */
const asyncTimeoutSecondsDefault = 300;

export function timeoutMsOf(
  { definition: { runtime } }: CalledReactor,
  kind: 'sync' | 'async',
): number {
  const { timeout, image } = runtime;
  const isLong = kind === 'async' && image === 'node-bt';
  return second * (timeout ?? (isLong ? asyncTimeoutSecondsDefault : timeoutSecondsDefault));
}

/** How entries and messages of what the code itself does name their source. */
export const sourceOf = ({ id }: Pick<CalledReactor, 'id'>): string =>
  `by the code of reactor ${id}`;

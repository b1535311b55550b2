/** From a row of a delivery to what is sent: its event, opened and checked, as receivers see it. */
import { type Clock, second } from '../../lib/clock.ts';
import { VaultError } from '../../lib/errors.ts';
import { ExpiringMap } from '../../lib/expiring-map.ts';
import type { EventId } from '../../lib/ids.ts';
import type { JsonObject } from '../../lib/json.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import { envelopeOf } from '../events/envelope.ts';
import type { WithNames } from './names.ts';

export interface Prepared {
  readonly delivery: Row<'deliveries'>;
  /** The member `event`; `undefined` when there is nothing that could be sent. */
  readonly envelope: JsonObject | undefined;
  /** Why there is not, in a word. */
  readonly flaw?: 'altered' | 'removed';
}

export interface PrepareTools {
  readonly store: Store;
  readonly withNames: WithNames;
  readonly recent: RecentEnvelopes;
  /** Each time that an event is met which was altered outside the vault. Nobody gets it. */
  readonly onAltered: () => void;
}

/** Events that several webhooks want are opened once. */
const openedMsMax = 10 * second;
const openedMax = 1_000;

export type RecentEnvelopes = ExpiringMap<EventId, JsonObject>;

export function createRecentEnvelopes(clock: Clock): RecentEnvelopes {
  return new ExpiringMap({ clock, ageMsMax: openedMsMax, entriesMax: openedMax });
}

export async function prepare(
  { store, withNames, onAltered, recent }: PrepareTools,
  tenant: Tenant,
  delivery: Row<'deliveries'>,
): Promise<Prepared> {
  const { tenant_id, event_id } = delivery;
  const known = recent.get(event_id);
  if (known?.['tenant_id'] === tenant_id) return { delivery, envelope: known };
  const event = await store.get('events', { tenant_id, event_id });
  if (event === undefined) return { delivery, envelope: undefined, flaw: 'removed' };
  try {
    const envelope = await withNames(tenant, (nameOf) => envelopeOf(tenant, event, nameOf));
    recent.set(event_id, envelope);
    return { delivery, envelope };
  } catch (error) {
    if (!(error instanceof VaultError) || error.code !== 'integrity') throw error;
    onAltered();
    return { delivery, envelope: undefined, flaw: 'altered' };
  }
}

/** Prepares a delivery for sending: opens and checks its event. */
import { type Clock, second } from '../../base/clock.ts';
import { ExpiringMap } from '../../base/expiring-map.ts';
import type { EventId } from '../../base/ids.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import { envelopeOf, type SentEvent } from '../events/envelope.ts';
import type { WithNames } from './names.ts';

/** The reason for which an event cannot be sent, as one word. */
export type Flaw = 'altered' | 'removed';

export interface PreparedDelivery {
  readonly sent: SentEvent | undefined;
  readonly flaw?: Flaw;
}

export interface PrepareTools {
  readonly store: Store;
  readonly withNames: WithNames;
  readonly recent: RecentEnvelopes;
}

/** An event for several webhooks is opened once. */
const openedMsMax = 10 * second;
const openedMax = 1_000;

export type RecentEnvelopes = ExpiringMap<EventId, SentEvent>;

export function createRecentEnvelopes(clock: Clock): RecentEnvelopes {
  return new ExpiringMap({ clock, ageMsMax: openedMsMax, entriesMax: openedMax });
}

type EventKey = Pick<Row<'deliveries'>, 'tenant_id' | 'event_id'>;

/** Only from the cache. */
export function preparedBefore(
  { recent }: Pick<PrepareTools, 'recent'>,
  { tenant_id, event_id }: EventKey,
): SentEvent | undefined {
  const known = recent.get(event_id);
  return known?.envelope['tenant_id'] === tenant_id ? known : undefined;
}

export async function prepare(
  tools: PrepareTools,
  tenant: Tenant,
  { tenant_id, event_id }: EventKey,
): Promise<PreparedDelivery> {
  const { store, withNames, recent } = tools;
  const known = preparedBefore(tools, { tenant_id, event_id });
  if (known) return { sent: known };
  const prepared = await tenant.quarantine.fetch(async (): Promise<PreparedDelivery> => {
    const event = await store.get('events', { tenant_id, event_id });
    if (event === undefined) return { sent: undefined, flaw: 'removed' };
    const sent = await withNames(tenant, (nameOf) => envelopeOf(tenant, event, nameOf));
    recent.set(event_id, sent);
    return { sent };
  });
  return prepared ?? { sent: undefined, flaw: 'altered' };
}

/** The deliveries of a webhook: when each was sent, and its outcome, but never the receiver's response. */

import { parseInstant } from '../base/clock.ts';
import { formatTimestamp } from '../base/dates.ts';
import { VaultError } from '../base/errors.ts';
import type { DeliveryId } from '../base/ids.ts';
import { sealCursor } from '../keys/cursor.ts';
import { type Caller, payerOf } from '../rules/caller.ts';
import { entryOf } from '../rules/log-entries.ts';
import { positionOfCursor } from '../rules/offset-page.ts';
import type { Decide } from '../rules/operation.ts';
import { rowOf } from '../rules/stored-resource.ts';
import { deliveryPage } from '../store/event-queries/webhooks.ts';
import type { Store } from '../store/store.ts';
import type { Row } from '../store/tables.ts';
import { attemptsOf } from './events/delivery-row.ts';
import type { WebhookReading } from './resource.ts';

export interface DeliveryQuery {
  readonly state?: Row<'deliveries'>['state'];
  readonly size?: number;
  /** Cursor of an earlier response. */
  readonly start?: string;
}

const sizeDefault = 20;

/**
 * Newest first. The decision throws `not_found`.
 * @throws VaultError `validation_failed` for an invalid cursor.
 */
export function listDeliveries(
  { store, clock }: WebhookReading,
  caller: Caller,
  { id, query }: { readonly id: string; readonly query: DeliveryQuery },
): Decide {
  const { tenant } = caller;
  const { state, size = sizeDefault, start } = query;
  const cursorKey = tenant.keyring.secret('cursor');
  const route = `GET /webhooks/${id.toLowerCase()}/deliveries`;
  const [before] = positionOfCursor<readonly [DeliveryId]>(cursorKey, route, start) ?? [];
  return async () => {
    const { tenant_id, webhook_id } = await rowOf(store, 'webhooks', { tenant, id });
    const limit = size + 1;
    const page = deliveryPage({ tenant: tenant_id, webhook: webhook_id, state, before, limit });
    // Rows of one state may be few among many.
    const rows = await (state === undefined
      ? store.select(page)
      : store.scan(page, payerOf(caller)));
    const shown = rows.slice(0, size);
    const last = shown.at(-1)?.delivery_id;
    const next = rows.length > size && last && sealCursor(cursorKey, route, [last]);
    const fact = { entity: 'webhook', id: webhook_id, operation: 'list deliveries' } as const;
    return {
      change: { entries: [entryOf(caller, clock.now(), fact)] },
      reply: {
        status: 200,
        body: {
          pagination: { page_size: size, ...(next && { next }) },
          data: shown.map(viewDelivery),
        },
      },
    };
  };
}

/** @throws VaultError `not_found` */
export async function deliveryOf(
  store: Store,
  { tenant_id, webhook_id }: Row<'webhooks'>,
  delivery_id: DeliveryId | undefined,
): Promise<Row<'deliveries'>> {
  const key = delivery_id && { tenant_id, webhook_id, delivery_id };
  const row = key && (await store.get('deliveries', key));
  if (row) return row;
  throw new VaultError('not_found', { public: 'There is no delivery with this id.' });
}

export function viewDelivery(row: Row<'deliveries'>): object {
  return {
    id: row.delivery_id,
    event_id: row.event_id,
    type: row.type,
    state: row.state,
    created_at: formatTimestamp(row.created_at),
    ...(row.state === 'waiting' && { due_at: formatTimestamp(row.due_at) }),
    attempts: attemptsOf(row).map(({ at, ...attempt }) => ({
      at: formatTimestamp(parseInstant(at)),
      ...attempt,
    })),
  };
}

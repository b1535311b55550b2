/** The stored form of an event: sealed, bound to its columns, and numbered when it is dispatched. */

import { integrityError } from '../../base/errors.ts';
import type { EventId } from '../../base/ids.ts';
import type { JsonObject } from '../../base/json.ts';
import type { Random } from '../../base/random.ts';
import { type Binding, openText, resealText, type Sealed, sealText } from '../../keys/envelope.ts';
import { proveRow, rowProven } from '../../keys/row-proof.ts';
import type { Opener, Resealer } from '../../rules/openings.ts';
import type { Keys } from '../../rules/proven-row.ts';
import type { TenantKeys } from '../../rules/tenant.ts';
import type { Row } from '../../store/tables.ts';

/** The sealed part. It never contains the data of a token. */
export interface EventBody {
  /** Objects by name, such as `token`. */
  readonly data: JsonObject;
  /** Without the name, which is looked up when the event is sent; absent if the actor is unknown. */
  readonly actor?: EventActor;
  /** From the request; null for operations of the vault itself. */
  readonly trace_id: string | null;
  /** The `CDN-Loop` of the request, if it had one. Receivers get it as the header, not in the event. */
  readonly loop?: string;
}

export interface EventActor {
  /** The id of an application or session. */
  readonly id?: string;
  readonly type: string;
}

type BoundColumns = Pick<Row<'events'>, 'event_id' | 'type' | 'entity_id' | 'created_at'>;

export interface NewEvent extends BoundColumns {
  readonly body: EventBody;
}

/** Not yet dispatched. */
export function eventRow(
  { id: tenant_id, keyring }: TenantKeys,
  { body, ...columns }: NewEvent,
  random: Random,
): Row<'events'> {
  const binding = bindingOf(tenant_id, columns);
  return {
    tenant_id,
    ...columns,
    sequence: null,
    proof: null,
    charged_to: null,
    body: sealText(keyring.sealing('data'), binding, JSON.stringify(body), random),
  };
}

/** @throws VaultError `integrity` unless the vault wrote this event, for this tenant. */
export function openEvent(
  { id, keyring, grant }: Opener,
  row: BoundColumns & Pick<Row<'events'>, 'body'>,
): EventBody {
  const text = openText(keyring.opening('data', grant), bindingOf(id, row), row.body);
  const body: EventBody = JSON.parse(text.reveal());
  return body;
}

/** The sealed part, sealed again. @throws VaultError like {@link openEvent}. */
export function resealedEvent(
  { id, keyring, grant, random }: Resealer,
  row: BoundColumns & Pick<Row<'events'>, 'body'>,
): Sealed {
  const place = bindingOf(id, row);
  const places = { from: place, to: place };
  return resealText(keyring.opening('data', grant), places, { sealed: row.body, random });
}

/** A separate field: the sealed part of an event is never mistaken for the data of a token with the same id. */
function bindingOf(
  tenant: string,
  { event_id, type, entity_id, created_at }: BoundColumns,
): Binding {
  const row = JSON.stringify([type, entity_id, created_at]);
  return { tenant, id: event_id, field: 'event.body', row };
}

interface NumberedEvent {
  readonly event_id: EventId;
  readonly sequence: number;
}

/** For the column `proof`, when an event gets its sequence. */
export function sequenceProof({ keyring }: Keys, numbered: NumberedEvent): string {
  return proveRow(keyring, 'events', textOf(numbered));
}

/**
 * Returns the sequence of a dispatched event.
 * @throws VaultError `integrity` if the sequence was altered.
 */
export function sequenceOf(
  { id, keyring }: TenantKeys,
  { event_id, sequence, proof }: Pick<Row<'events'>, 'event_id' | 'sequence' | 'proof'>,
): number {
  const text = sequence === null ? '' : textOf({ event_id, sequence });
  if (sequence !== null && rowProven(keyring, { table: 'events', row: text, proof: proof ?? '' })) {
    return sequence;
  }
  throw integrityError(
    `the sequence of event ${event_id}, tenant ${id}, was altered outside the vault`,
  );
}

function textOf({ event_id, sequence }: NumberedEvent): string {
  return JSON.stringify([event_id, sequence]);
}

/** An event as receivers see it, except for the time of its delivery. */

import { isObject, type Json, type JsonObject } from '../../base/json.ts';
import { openerOf } from '../../rules/openings.ts';
import type { TenantKeys } from '../../rules/tenant.ts';
import type { Row } from '../../store/tables.ts';
import { openEvent, sequenceOf } from './event-row.ts';

/** The name of an application by its id; `undefined` if it no longer exists. */
export type NameOf = (application: string) => string | undefined;

export interface SentEvent {
  /** The member `event`. */
  readonly envelope: JsonObject;
  /** The `CDN-Loop` of the request that caused the event. */
  readonly loop: string | undefined;
}

/**
 * Returns the content to send for an event.
 * @throws VaultError `integrity` unless every part of it is as the vault wrote it.
 */
export function envelopeOf(tenant: TenantKeys, row: Row<'events'>, nameOf: NameOf): SentEvent {
  const { data, actor, trace_id, loop } = openEvent(openerOf('deliver events', tenant), row);
  const envelope = {
    id: row.event_id,
    type: row.type,
    timestamp: new Date(row.created_at).toISOString(),
    tenant_id: row.tenant_id,
    ...(trace_id !== null && { trace_id }),
    sequence: sequenceOf(tenant, row),
    data: {
      ...withNames(data, nameOf),
      ...(actor && { actor: named({ ...actor }, nameOf) }),
    },
  };
  return { envelope, loop };
}

function issuedTo({ session }: JsonObject): JsonObject | undefined {
  const application: Json | undefined = isObject(session)
    ? session['issued_to_application']
    : undefined;
  return isObject(application) ? application : undefined;
}

function withNames(data: JsonObject, nameOf: NameOf): JsonObject {
  const application = issuedTo(data);
  if (application === undefined) return data;
  const session = data['session'] as JsonObject;
  return { ...data, session: { ...session, issued_to_application: named(application, nameOf) } };
}

function named(subject: JsonObject, nameOf: NameOf): JsonObject {
  const { id } = subject;
  const name = typeof id === 'string' ? nameOf(id) : undefined;
  return name === undefined ? subject : { ...subject, name };
}

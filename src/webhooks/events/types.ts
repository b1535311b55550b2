/** The types of events, each with the log entry to which it corresponds. */

interface EventTypeRow {
  /** The entity in log entries, and the object in the event's data. Events of one entity are numbered together. */
  readonly entity: string;
  /** The operation in log entries; a second word names the part of the entity. */
  readonly operation: string;
  /** Whether the event ends the entity. */
  readonly ends?: true;
}

const rows = {
  'alert.altered_log': { entity: 'alert', operation: 'altered_log' },
  'alert.bin': { entity: 'alert', operation: 'bin' },
  'alert.egress_budget': { entity: 'alert', operation: 'egress_budget' },
  'alert.export': { entity: 'alert', operation: 'export' },
  'alert.honey_token': { entity: 'alert', operation: 'honey_token' },
  'alert.new_address': { entity: 'alert', operation: 'new_address' },
  'alert.refusals': { entity: 'alert', operation: 'refusals' },
  'alert.reveals': { entity: 'alert', operation: 'reveals' },
  'alert.stalled': { entity: 'alert', operation: 'stalled' },
  'application.created': { entity: 'application', operation: 'create' },
  'application.updated': { entity: 'application', operation: 'update' },
  'application.deleted': { entity: 'application', operation: 'delete', ends: true },
  'application.key.created': { entity: 'application_key', operation: 'create' },
  'application.key.deleted': { entity: 'application_key', operation: 'delete', ends: true },
  'approval.requested': { entity: 'approval', operation: 'create' },
  'approval.approved': { entity: 'approval', operation: 'approve' },
  'approval.denied': { entity: 'approval', operation: 'deny' },
  'approval.withdrawn': { entity: 'approval', operation: 'delete', ends: true },
  'approval.expired': { entity: 'approval', operation: 'expire', ends: true },
  'keyring.rotation.started': { entity: 'keyring', operation: 'rotate' },
  'keyring.rotation.finished': { entity: 'keyring', operation: 'finish' },
  'keyring.key.destroyed': { entity: 'keyring', operation: 'destroy' },
  'proxy.created': { entity: 'proxy', operation: 'create' },
  'proxy.updated': { entity: 'proxy', operation: 'update' },
  'proxy.deleted': { entity: 'proxy', operation: 'delete', ends: true },
  'proxy.invoked': { entity: 'proxy', operation: 'invoke' },
  'reactor.created': { entity: 'reactor', operation: 'create' },
  'reactor.updated': { entity: 'reactor', operation: 'update' },
  'reactor.deleted': { entity: 'reactor', operation: 'delete', ends: true },
  'reactor.invoked': { entity: 'reactor', operation: 'invoke' },
  'reactor.completed': { entity: 'reactor', operation: 'complete' },
  'reactor.failed': { entity: 'reactor', operation: 'fail' },
  'session.created': { entity: 'session', operation: 'create' },
  'session.authorized': { entity: 'session', operation: 'authorize' },
  'tenant.created': { entity: 'tenant', operation: 'create' },
  'tenant.updated': { entity: 'tenant', operation: 'update' },
  'tenant.deleted': { entity: 'tenant', operation: 'delete', ends: true },
  'token.created': { entity: 'token', operation: 'create' },
  'token.updated': { entity: 'token', operation: 'update' },
  'token.read': { entity: 'token', operation: 'read' },
  'token.deleted': { entity: 'token', operation: 'delete', ends: true },
  'token.expired': { entity: 'token', operation: 'expire', ends: true },
  'token.property.expired': { entity: 'token', operation: 'expire property' },
  'token-intent.created': { entity: 'token_intent', operation: 'create' },
  'token-intent.deleted': { entity: 'token_intent', operation: 'delete', ends: true },
  'token-intent.converted': { entity: 'token_intent', operation: 'convert', ends: true },
} as const satisfies Record<string, EventTypeRow>;

/** The type of a test event for one webhook. No webhook can subscribe to it. */
export const testType = 'webhook.test';

/** The types to which webhooks can subscribe. */
export type EventType = keyof typeof rows;

export const eventTypes: Readonly<Record<EventType, EventTypeRow>> = rows;

/** Every type, in the order of the list of types. */
export const eventTypeNames = Object.keys(rows) as readonly EventType[];

/** Parses a type; `undefined` if it does not exist. */
export function parseEventType(text: string): EventType | undefined {
  return Object.hasOwn(rows, text) ? (text as EventType) : undefined;
}

/** What the audit log says: one message per entity and operation, one entry per fact. */
import type { Instant } from '../lib/clock.ts';
import type { TenantId } from '../lib/ids.ts';
import type { LogEntry } from '../lib/log-chain.ts';
import type { Caller } from './caller.ts';

/** What was done, in the past tense; a refusal is told as "<Entity> <operation> denied". */
const messages = {
  token: {
    create: 'Token created',
    read: 'Token retrieved',
    update: 'Token updated',
    delete: 'Token deleted',
    expire: 'Token expired',
    list: 'Tokens listed',
  },
  application: {
    create: 'Application created',
    read: 'Application retrieved',
    update: 'Application updated',
    delete: 'Application deleted',
    list: 'Applications listed',
  },
  tenant: { create: 'Tenant created', read: 'Tenant retrieved', update: 'Tenant updated' },
  log: { read: 'Logs retrieved' },
} as const;

export type Entity = keyof typeof messages;

/** What people read for each entity type, in the order in which types are listed. */
export const displayNames: Readonly<Record<Entity, string>> = {
  application: 'Application',
  log: 'Log',
  tenant: 'Tenant',
  token: 'Token',
};

type OperationOf<E extends Entity> = keyof (typeof messages)[E];

export interface Fact<E extends Entity> {
  readonly entity: E;
  /** The entity's id. For a list, the id of the tenant. */
  readonly id: string;
  readonly operation: OperationOf<E> & string;
}

/** What a caller did. */
export function entryOf<E extends Entity>(caller: Caller, at: Instant, fact: Fact<E>): LogEntry {
  return {
    ...actorOf(caller),
    created_at: at,
    entity_type: fact.entity,
    entity_id: fact.id,
    operation: fact.operation,
    message: messages[fact.entity][fact.operation] as string,
    result: 'success',
  };
}

/** What was attempted, also on entities this release only knows by their permissions. */
export interface Denial {
  readonly entity: string;
  /** `*` where no entity was named. */
  readonly id: string;
  readonly operation: string;
}

/** What a caller was refused. */
export function denialOf(caller: Caller, at: Instant, denial: Denial): LogEntry {
  const name = (displayNames as Readonly<Record<string, string>>)[denial.entity] ?? denial.entity;
  return {
    ...actorOf(caller),
    created_at: at,
    entity_type: denial.entity,
    entity_id: denial.id,
    operation: denial.operation,
    message: `${name} ${denial.operation} denied`,
    result: 'denied',
  };
}

/** What the service or its operator did, without a caller. */
export function systemEntry<E extends Entity>(
  fact: Fact<E> & { readonly tenant: TenantId; readonly at: Instant },
): LogEntry {
  return {
    tenant_id: fact.tenant,
    created_at: fact.at,
    actor_id: null,
    actor_type: 'system',
    entity_type: fact.entity,
    entity_id: fact.id,
    operation: fact.operation,
    message: messages[fact.entity][fact.operation] as string,
    result: 'success',
    origin: null,
    trace_id: null,
  };
}

function actorOf(caller: Caller) {
  return {
    tenant_id: caller.tenant.id,
    actor_id: caller.application,
    actor_type: 'application',
    origin: caller.origin.address,
    trace_id: caller.origin.traceId,
  };
}

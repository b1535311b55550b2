/** What the audit log says: one message per entity and operation, one entry per fact. */
import type { Instant } from '../base/clock.ts';
import type { AlteredRow } from '../base/errors.ts';
import type { TenantId } from '../base/ids.ts';
import type { JsonObject } from '../base/json.ts';
import { codeOf, type Disclosure } from '../store/log-chain/disclosure.ts';
import { type EntrySource, type LogEntry, noSource } from '../store/log-chain/entries.ts';
import type { Actor, Caller } from './caller.ts';
import { messages } from './log-messages.ts';

export type Entity = keyof typeof messages;

/** What people read for each entity type, in the order in which types are listed. */
export const displayNames: Readonly<Record<Entity | ForeignEntity, string>> = {
  alert: 'Alert',
  application: 'Application',
  application_key: 'Application Key',
  application_template: 'Application Template',
  approval: 'Approval',
  bank: 'Bank',
  card: 'Card',
  console_session: 'Console Session',
  idempotency_key: 'Idempotency Key',
  key: 'Key',
  keyring: 'Keyring',
  log: 'Log',
  log_checkpoint: 'Log Checkpoint',
  permission: 'Permission',
  person: 'Person',
  proxy: 'Proxy',
  reactor: 'Reactor',
  reactor_run: 'Reactor Call',
  session: 'Session',
  console_link: 'Sign-in Link',
  sign_in_method: 'Sign-in Method',
  tenant: 'Tenant',
  tenant_host: 'Tenant Host',
  token: 'Token',
  token_intent: 'Token Intent',
  webhook: 'Webhook',
};

/** Named by the interface that clients know. In this release no operation on them succeeds. */
type ForeignEntity = 'bank';

type OperationOf<E extends Entity> = keyof (typeof messages)[E];

export interface Fact<E extends Entity> {
  readonly entity: E;
  /** The entity's id. For a list, the id of the tenant. */
  readonly id: string;
  readonly operation: OperationOf<E> & string;
  /** Where the token or token intent is. */
  readonly container?: string | undefined;
  /** Set if the operation showed data. */
  readonly disclosure?: Disclosure | undefined;
  /** Objects of the event that follows, such as `{token: {type: 'card'}}`: never data, never a value. */
  readonly event?: JsonObject | undefined;
}

/** What a caller or the operator did. */
export function entryOf<E extends Entity>(actor: Actor, at: Instant, fact: Fact<E>): LogEntry {
  return {
    ...actorOf(actor),
    created_at: at,
    entity_type: fact.entity,
    entity_id: fact.id,
    operation: fact.operation.split(' ', 1)[0] ?? '',
    message: messageOf(actor, messages[fact.entity][fact.operation] as string),
    result: 'success',
    disclosure: fact.disclosure ? codeOf(fact.disclosure) : null,
    container: fact.container ?? null,
    ...(fact.event && { event: fact.event }),
  };
}

/** The entry with further details. Its message stays within the length that the interface allows. */
export function detailed(entry: LogEntry, detail: string): LogEntry {
  return { ...entry, message: `${entry.message}: ${detail}`.slice(0, messageLengthMax) };
}

const messageLengthMax = 250;

/** What was attempted, also on entities this release only knows by their permissions. */
export interface AttemptedOperation {
  readonly entity: string;
  /** `*` if no existing entity was named: a path may hold a value by mistake. */
  readonly id: string;
  readonly operation: string;
  readonly container?: string | undefined;
  /** What the caller could find out by the failure. */
  readonly disclosure?: Disclosure | undefined;
}

/** The entry of a refused operation. */
export function denialOf(caller: Caller, at: Instant, denial: AttemptedOperation): LogEntry {
  return attemptEntry(caller, at, { ...denial, result: 'denied' });
}

/** The entry of a failed attempt. Without an id, the entity does not exist. */
export function failureOf(
  caller: Caller,
  at: Instant,
  { id = '*', ...failure }: Omit<AttemptedOperation, 'id'> & { readonly id?: string },
): LogEntry {
  return attemptEntry(caller, at, { ...failure, id, result: 'failed' });
}

/** The entries of one change, with equal refusals and failures combined into one that has their count. */
export function counted(entries: readonly LogEntry[]): readonly LogEntry[] {
  if (entries.every(({ result }) => result === 'success')) return entries;
  const counts = new Map<string, { readonly entry: LogEntry; count: number }>();
  for (const [index, entry] of entries.entries()) {
    const { entity_type, entity_id, operation, result } = entry;
    const name =
      result === 'success' ? String(index) : [result, operation, entity_type, entity_id].join(' ');
    const known = counts.get(name);
    if (known) known.count++;
    else counts.set(name, { entry, count: 1 });
  }
  return Array.from(counts.values(), ({ entry, count }) =>
    count === 1 ? entry : { ...entry, message: `${entry.message} (${count} times)` },
  );
}

function attemptEntry(
  caller: Caller,
  at: Instant,
  attempted: AttemptedOperation & { readonly result: 'denied' | 'failed' },
): LogEntry {
  const { entity, id, operation, container = null, disclosure, result } = attempted;
  const name = (displayNames as Readonly<Record<string, string>>)[entity] ?? entity;
  return {
    ...actorOf(caller),
    created_at: at,
    entity_type: entity,
    entity_id: id,
    operation,
    message: messageOf(caller, `${name} ${operation} ${result}`),
    result,
    disclosure: disclosure ? codeOf(disclosure) : null,
    container,
  };
}

/** The entry of an action of the service or its operator, without a caller. */
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
    operation: fact.operation.split(' ', 1)[0] ?? '',
    message: messages[fact.entity][fact.operation] as string,
    result: 'success',
    disclosure: null,
    container: fact.container ?? null,
    origin: null,
    trace_id: null,
    source: noSource,
    ...(fact.event && { event: fact.event }),
  };
}

/**
 * An attacker, or an operator, wrote to the database outside the vault. Monitoring of the log can search for these
 * words.
 */
export const alteredOutside = 'altered outside the vault';

/** A request met a row that was altered outside the vault, and was refused. */
export function alteredEntry(
  caller: Caller,
  at: Instant,
  { entity, id, operation }: AttemptedOperation,
): LogEntry {
  const entry = denialOf(caller, at, { entity, id, operation });
  return { ...entry, message: `${entry.message}: it was ${alteredOutside}` };
}

/** {@link alteredEntry} for each row that a list leaves out. */
export function alteredEntries(
  caller: Caller,
  at: Instant,
  altered: readonly AlteredRow[],
  operation: string,
): readonly LogEntry[] {
  return altered.map((row) => alteredEntry(caller, at, { ...row, operation }));
}

/** What happened, and the reason that was given for it. */
function messageOf(actor: Actor, message: string): string {
  const reason = actor.application === null ? undefined : actor.origin.reason;
  return reason === undefined ? message : `${message}: ${reason}`.slice(0, messageLengthMax);
}

function actorOf(actor: Actor) {
  const tenant_id = actor.tenant.id;
  if (actor.application === null) {
    const from = { origin: null, trace_id: null, source: noSource };
    return { tenant_id, actor_id: null, actor_type: 'operator', ...from };
  }
  const { application, session, origin, anonymous } = actor;
  const from = {
    origin: origin.address,
    trace_id: origin.traceId,
    source: sourceOf(actor),
    spenders: actor.spenders,
  };
  if (anonymous) return { tenant_id, actor_id: null, actor_type: 'anonymous', ...from };
  return {
    tenant_id,
    actor_id: session ?? application,
    actor_type: session === undefined ? 'application' : 'session',
    ...from,
  };
}

function sourceOf({ application, key, session, anonymous, origin }: Caller): EntrySource {
  const { person, userAgent = null, forwarded = null } = origin;
  return {
    application_id: session === undefined && anonymous === undefined ? null : application,
    key_id: key ?? null,
    person_id: person?.id ?? null,
    person_name: person?.name ?? null,
    user_agent: userAgent,
    forwarded,
  };
}

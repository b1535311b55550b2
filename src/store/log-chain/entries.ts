/** The entries of the audit log: what one says, the text that stands for it, and how that is hashed. */
import { hash } from 'node:crypto';
import { type Instant, latestInstant, parseInstant } from '../../base/clock.ts';
import type { TenantId } from '../../base/ids.ts';
import { type JsonObject, jsonText } from '../../base/json.ts';
import { type DisclosureCode, disclosureOf } from './disclosure.ts';

/** One audited fact, as decided by the rules. It names things; it never holds a value. */
export interface LogEntry {
  readonly tenant_id: TenantId;
  readonly created_at: Instant;
  readonly actor_id: string | null;
  readonly actor_type: string;
  readonly entity_type: string;
  readonly entity_id: string;
  readonly operation: string;
  readonly message: string;
  /** `success` or `denied`. */
  readonly result: string;
  /** Of data that the request showed and had not brought itself; null where it showed none. */
  readonly disclosure: DisclosureCode | null;
  /** The caller's network address. */
  readonly origin: string | null;
  readonly trace_id: string | null;
  /** What an event says besides what is in the rows of the change. It is no part of the log. */
  readonly event?: JsonObject;
}

/** An entry, and the rows of which it is the last word. */
export interface StatedEntry extends LogEntry {
  /** What it left behind; null where it changed nothing. See `store/row-states.ts`. */
  readonly state: string | null;
}

/** An entry in its place: the `seq`-th of its tenant's stream. */
export interface PlacedEntry extends StatedEntry {
  readonly stream_id: string;
  readonly seq: number;
}

/** An entry that is chained to the one before. */
export interface ChainedEntry extends PlacedEntry {
  /** Lower-case hex of SHA-256; see {@link entryHash}. */
  readonly hash: string;
}

/** What a text says; tenant and stream are those of the block that holds it. */
export type EntryFacts = Omit<StatedEntry, 'tenant_id' | 'event'>;

/**
 * The entry's facts as one JSON array, which is what is stored and hashed. What neighbours have in common
 * comes first; see `block.ts`. JSON has no raw line break, and is unambiguous here: every fact is a string,
 * an integer or null. Most entries change nothing, and have no last element.
 */
export function textOf(entry: LogEntry, state: string | null): string {
  const { created_at, entity_id, trace_id } = entry;
  const trace = trace_id === null ? 'null' : jsonText(trace_id);
  const end = state === null ? ']' : `,${jsonText(state)}]`;
  return `${beginningOf(entry)},${created_at},${jsonText(entity_id)},${trace}${end}`;
}

type RepeatedFacts = Omit<LogEntry, 'tenant_id' | 'created_at' | 'entity_id' | 'trace_id'>;

let latest: { readonly facts: RepeatedFacts; readonly text: string } | undefined;

/** What one caller does again and again differs in the last facts alone. */
function beginningOf(facts: RepeatedFacts): string {
  if (latest === undefined || !isAlike(latest.facts, facts)) {
    const { actor_id, actor_type, origin, entity_type } = facts;
    const { operation, message, result, disclosure } = facts;
    const all = [actor_id, actor_type, origin, entity_type, operation, message, result, disclosure];
    latest = { facts, text: JSON.stringify(all).slice(0, -1) };
  }
  return latest.text;
}

function isAlike(one: RepeatedFacts, other: RepeatedFacts): boolean {
  return (
    one.actor_id === other.actor_id &&
    one.operation === other.operation &&
    one.entity_type === other.entity_type &&
    one.disclosure === other.disclosure &&
    one.message === other.message &&
    one.result === other.result &&
    one.origin === other.origin &&
    one.actor_type === other.actor_type
  );
}

/** Reads {@link textOf}; `undefined` for anything that it would not have written. */
export function factsOf(text: string): EntryFacts | undefined {
  const facts = parseArray(text);
  if (facts === undefined || !hasShape(facts)) return undefined;
  const [actor_id, actor_type, origin, entity_type, operation, message, result] = facts;
  const [disclosure, created_at, entity_id, trace_id, state = null] = facts.slice(7);
  return {
    created_at: parseInstant(Number(created_at)),
    actor_id,
    actor_type,
    entity_type,
    entity_id,
    operation,
    message,
    result,
    disclosure,
    origin,
    trace_id,
    state,
  } as EntryFacts;
}

function parseArray(text: string): readonly unknown[] | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    return Array.isArray(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

const factCount = 11;
const disclosure = 7;
const createdAt = 8;
/** The places of facts that may be absent. */
const optional: ReadonlySet<number> = new Set([0, 2, disclosure, 10]);

function hasShape(facts: readonly unknown[]): boolean {
  if (facts.length !== factCount && facts.length !== factCount + 1) return false;
  return facts.every((fact, place) => {
    if (place === createdAt) {
      return Number.isInteger(fact) && Number(fact) >= 0 && Number(fact) <= latestInstant;
    }
    if (place === disclosure && typeof fact === 'string') return disclosureOf(fact) !== undefined;
    return typeof fact === 'string' || (fact === null && optional.has(place));
  });
}

/** The hash before the first entry of a stream. It names the stream, so streams cannot be swapped. */
export function streamSeed(tenant: TenantId, streamId: string): string {
  return hash('sha256', JSON.stringify(['strongroom log stream', 1, tenant, streamId]));
}

/** SHA-256 over the previous entry's hash, the entry's number and its text, as lower-case hex. */
export function entryHash(previous: string, seq: number, text: string): string {
  return hash('sha256', `${previous}${seq}${text}`);
}

/** How far a stream has come: its last entry, or seq 0 and the seed before the first. */
export interface ChainHead {
  readonly seq: number;
  readonly hash: string;
}

export function seedHead(tenant: TenantId, streamId: string): ChainHead {
  return { seq: 0, hash: streamSeed(tenant, streamId) };
}

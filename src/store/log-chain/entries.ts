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
  /** What else is known of who asked, and through what; null in entries of releases that did not record it. */
  readonly source: EntrySource | null;
  /** Of the token or token intent that it is about; null for anything else, and where none was found. */
  readonly container: string | null;
  /** What an event says besides what is in the rows of the change. It is no part of the log. */
  readonly event?: JsonObject;
  /** Against whose budgets the entry counts; none for the operator and the vault. It is no part of the log. */
  readonly spenders?: readonly Spender[];
  /** Of the card that was created or revealed. It is no part of the log. */
  readonly bin?: string | undefined;
}

/** Whose budget counts the values that are revealed. */
export interface Spender {
  readonly application_id: string;
  /** The key, or the person. Callers who have neither count together as their application. */
  readonly counted_id: string;
}

/** The facts that the entries of one request share, besides its actor and its address. */
export interface EntrySource {
  /** With whose rights it acted, where that is not the actor itself: the application of a session, or of a proxy. */
  readonly application_id: string | null;
  /** The key that was sent. */
  readonly key_id: string | null;
  /** The person who used the console, and the name by which it knew them. */
  readonly person_id: string | null;
  readonly person_name: string | null;
  /** The products that the client names, shortened. A client can claim anything. */
  readonly user_agent: string | null;
  /** The trusted proxies that passed it on, the nearest to the client first. */
  readonly forwarded: string | null;
}

/** Of the vault itself, and of its operator on the command line. */
export const noSource: EntrySource = {
  application_id: null,
  key_id: null,
  person_id: null,
  person_name: null,
  user_agent: null,
  forwarded: null,
};

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
export type EntryFacts = Omit<StatedEntry, 'tenant_id' | 'event' | 'spenders' | 'bin'>;

/**
 * The entry's facts as one JSON array, which is what is stored and hashed. What neighbours have in common
 * comes first; see `block.ts`. JSON has no raw line break, and is unambiguous here: every fact is a string,
 * an integer or null. Most entries change nothing, and have no last element. An entry without a source has the form
 * of the releases that recorded none.
 */
export function textOf(entry: LogEntry, state: string | null): string {
  const { created_at, entity_id, trace_id } = entry;
  const trace = trace_id === null ? 'null' : jsonText(trace_id);
  const end = state === null ? ']' : `,${jsonText(state)}]`;
  return `${repeatedOf(entry).text},${created_at},${jsonText(entity_id)},${trace}${end}`;
}

export type RepeatedFacts = Omit<LogEntry, 'tenant_id' | 'created_at' | 'entity_id' | 'trace_id'>;

/** What one caller does again and again differs in the last facts alone. */
class Repeated {
  readonly facts: RepeatedFacts;
  /** How the texts of such entries begin. */
  readonly text: string;
  #terms: string | undefined;

  constructor(facts: RepeatedFacts) {
    this.facts = facts;
    this.text = beginningOf(facts);
  }

  /** What else follows from these facts alone; computed once. */
  termsBy(compute: (facts: RepeatedFacts) => string): string {
    this.#terms ??= compute(this.facts);
    return this.#terms;
  }
}

let latest: Repeated | undefined;

export function repeatedOf(entry: RepeatedFacts): Repeated {
  if (latest === undefined || !isAlike(latest.facts, entry)) latest = new Repeated(entry);
  return latest;
}

function beginningOf(facts: RepeatedFacts): string {
  const { actor_id, actor_type, origin, entity_type, source } = facts;
  const { operation, message, result, disclosure, container } = facts;
  const about = [entity_type, operation, message, result, disclosure];
  if (source === null) {
    return JSON.stringify([actor_id, actor_type, origin, ...about]).slice(0, -1);
  }
  const { key_id, application_id, person_id, person_name, user_agent, forwarded } = source;
  const who = [actor_type, actor_id, key_id, application_id, person_id, person_name];
  const where = [origin, user_agent, forwarded];
  return JSON.stringify([trimmed(who), trimmed(where), ...about, container]).slice(0, -1);
}

/** Without the nulls at its end. */
function trimmed(facts: readonly (string | null)[]): readonly (string | null)[] {
  return facts.slice(0, facts.findLastIndex((fact) => fact !== null) + 1);
}

function isAlike(one: RepeatedFacts, other: RepeatedFacts): boolean {
  return (
    one.actor_id === other.actor_id &&
    one.operation === other.operation &&
    one.entity_type === other.entity_type &&
    one.disclosure === other.disclosure &&
    one.message === other.message &&
    one.container === other.container &&
    one.result === other.result &&
    one.origin === other.origin &&
    one.actor_type === other.actor_type &&
    (one.source === other.source || isSameSource(one.source, other.source))
  );
}

function isSameSource(one: EntrySource | null, other: EntrySource | null): boolean {
  return (
    one !== null &&
    other !== null &&
    one.key_id === other.key_id &&
    one.user_agent === other.user_agent &&
    one.application_id === other.application_id &&
    one.person_id === other.person_id &&
    one.person_name === other.person_name &&
    one.forwarded === other.forwarded
  );
}

/** Reads {@link textOf}; `undefined` for anything that it would not have written. */
export function factsOf(text: string): EntryFacts | undefined {
  const facts = parseArray(text);
  if (facts === undefined) return undefined;
  return Array.isArray(facts[0]) ? sourcedFacts(facts) : earlierFacts(facts);
}

/** Of a release that recorded no source. */
function earlierFacts(facts: readonly unknown[]): EntryFacts | undefined {
  if (!hasShape(facts, earlierShape)) return undefined;
  const [actor_id, actor_type, origin, ...rest] = facts;
  const [entity_type, operation, message, result, disclosure, ...last] = rest;
  const about = { entity_type, operation, message, result, disclosure, container: null };
  return { actor_id, actor_type, origin, source: null, ...about, ...lastFacts(last) } as EntryFacts;
}

function sourcedFacts([whoFacts, whereFacts, ...facts]: readonly unknown[]):
  | EntryFacts
  | undefined {
  const who = groupOf(whoFacts, whoMax);
  const where = groupOf(whereFacts, whereMax);
  if (who === undefined || where === undefined || !hasShape(facts, sourcedShape)) return undefined;
  const [actor_type, actor_id = null, key_id = null, application_id = null] = who;
  const [person_id = null, person_name = null] = who.slice(4);
  const [origin = null, user_agent = null, forwarded = null] = where;
  if (typeof actor_type !== 'string') return undefined;
  const source = { application_id, key_id, person_id, person_name, user_agent, forwarded };
  const [entity_type, operation, message, result, disclosure, container, ...last] = facts;
  const about = { entity_type, operation, message, result, disclosure, container };
  return { actor_id, actor_type, origin, source, ...about, ...lastFacts(last) } as EntryFacts;
}

const whoMax = 6;
const whereMax = 3;

/** Strings and nulls, of which the last is no null. */
function groupOf(value: unknown, max: number): readonly (string | null)[] | undefined {
  if (!Array.isArray(value) || value.length > max || value.at(-1) === null) return undefined;
  return value.every((fact) => fact === null || typeof fact === 'string') ? value : undefined;
}

function lastFacts([created_at, entity_id, trace_id, state = null]: readonly unknown[]) {
  return { created_at: parseInstant(Number(created_at)), entity_id, trace_id, state };
}

function parseArray(text: string): readonly unknown[] | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    return Array.isArray(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

/** The places of facts in an array of strings. One more, the state, may follow. */
interface TextShape {
  readonly count: number;
  readonly disclosure: number;
  readonly createdAt: number;
  /** Those that may be null. */
  readonly optional: ReadonlySet<number>;
}

const earlierShape: TextShape = {
  count: 11,
  disclosure: 7,
  createdAt: 8,
  optional: new Set([0, 2, 7, 10]),
};
/** Without the two groups of its beginning. */
const sourcedShape: TextShape = {
  count: 9,
  disclosure: 4,
  createdAt: 6,
  optional: new Set([4, 5, 8]),
};

function hasShape(facts: readonly unknown[], shape: TextShape): boolean {
  const { count, disclosure, createdAt, optional } = shape;
  if (facts.length !== count && facts.length !== count + 1) return false;
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

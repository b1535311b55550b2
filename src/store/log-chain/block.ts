/** Blocks of the log: the entries that one commit adds to a tenant's stream, as one row. */
import { type Instant, second } from '../../base/clock.ts';
import type { TenantId } from '../../base/ids.ts';
import { codeOf, shownWords, throughWords } from './disclosure.ts';
import {
  type ChainedEntry,
  type EntryFacts,
  entryHash,
  factsOf,
  type LogEntry,
  type PlacedEntry,
  type RepeatedFacts,
  repeatedOf,
  textOf,
} from './entries.ts';

/** As stored. All but the hash and the proof follows from the body and from the place. */
export interface LogBlock {
  readonly tenant_id: TenantId;
  readonly stream_id: string;
  readonly first_seq: number;
  readonly last_seq: number;
  /** When the oldest and the newest of the entries were created, in whatever order they are. */
  readonly first_at: Instant;
  readonly last_at: Instant;
  /** Of the last entry. */
  readonly hash: string;
  /** See `proof.ts`; null where the tenant has no keys any more. */
  readonly proof: string | null;
  /** The search terms of the entries, each once; see {@link termOfId}. */
  readonly entities: string;
  /** The texts of the entries; see {@link lineOf}. */
  readonly body: string;
}

/** More entries than these, longer ones, or entries further apart, become several blocks; see {@link isBlockSize}. */
export const blockMax = {
  /** Bounds what is decoded in one piece. */
  entries: 500,
  /** Of all texts together. A line of a few characters may stand for a text of a million. */
  characters: 512 * 1024,
  /** Bounds how far from its time a search looks for an entry. */
  spanMs: second,
} as const;

/**
 * Whether this many strings with this many characters form one block. The vault writes nothing larger, and accepts
 * nothing larger as its own. A single string is a block whatever its length, so that any entry can be written.
 */
export function isBlockSize(texts: number, characters: number): boolean {
  return texts === 1 || (texts <= blockMax.entries && characters <= blockMax.characters);
}

/** An entry on its way to the one writer of its stream: flat, and cheap to send to another thread. */
export interface WrittenEntry {
  readonly tenant_id: TenantId;
  readonly created_at: Instant;
  readonly text: string;
  /** See {@link termsOf}. */
  readonly terms: string;
}

export function writtenEntry(entry: LogEntry, state: string | null): WrittenEntry {
  const { tenant_id, created_at } = entry;
  return { tenant_id, created_at, text: textOf(entry, state), terms: termsOf(entry) };
}

/**
 * The search terms of an entry: after a dot those that it shares with what the same caller does again and again, and
 * after another one those of its own. Releases that recorded no source wrote terms of the entity and of the
 * disclosure alone, without dots.
 */
function termsOf(entry: Omit<LogEntry, 'tenant_id'>): string {
  const { entity_id, trace_id, source } = entry;
  if (source === null) return earlierTerms(entry);
  const trace = trace_id === null ? '' : termOf('trace_id', tracePart(trace_id));
  return `.${repeatedOf(entry).termsBy(repeatedTerms)}.${termOf('entity_id', entity_id)}${trace}`;
}

function repeatedTerms(facts: RepeatedFacts): string {
  const { entity_type, operation, result, disclosure, actor_id, origin, container, source } = facts;
  const optional = [
    ['actor_id', actor_id],
    ['key_id', source?.key_id ?? null],
    ['address', origin],
    ['container', container],
    // Nearly every block has entries of what succeeded.
    ['result', result === 'success' ? null : result],
  ] as const;
  return (
    termOf('entity_type', entity_type) +
    termOf('operation', operation) +
    optional.map(([name, text]) => (text === null ? '' : termOf(name, text))).join('') +
    (disclosure === null ? '' : termsOfDisclosure.get(disclosure))
  );
}

function earlierTerms({ entity_id, entity_type, disclosure }: Omit<LogEntry, 'tenant_id'>): string {
  const ofEntity = termOf('entity_id', entity_id) + termOf('entity_type', entity_type);
  return disclosure === null ? ofEntity : ofEntity + termsOfDisclosure.get(disclosure);
}

/** A trace id without the mark that follows it in the entries of a bulk request; see `rules/caller.ts`. */
export function tracePart(traceId: string): string {
  const end = traceId.indexOf(' ');
  return end === -1 ? traceId : traceId.slice(0, end);
}

export const termCharacters = 4;

/** FNV-1a begins with the first. Another beginning makes other terms of the same text. */
const bases = {
  entity_id: 0x811c9dc5,
  entity_type: 0x2f0b4a17,
  shown: 0x5bd1e995,
  through: 0x1b873593,
  actor_id: 0x3c6ef372,
  key_id: 0x510e527f,
  address: 0x1f83d9ab,
  operation: 0x6a09e667,
  result: 0x5be0cd19,
  container: 0x428a2f98,
  trace_id: 0x71374491,
} as const;
const fnvPrime = 0x01000193;
const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** By the code of the digit. */
const bitsOf = Uint8Array.from({ length: 128 }, (_, code) =>
  Math.max(0, digits.indexOf(String.fromCharCode(code))),
);

/** The facts by which entries are found. */
export type SearchedFact = keyof typeof bases;

/** Those whose terms blocks of earlier releases have as well. */
export const earlierSearchedFacts: ReadonlySet<SearchedFact> = new Set([
  'entity_id',
  'entity_type',
  'shown',
  'through',
]);

/**
 * The search term of a fact: 24 bits of a hash, in base64url. A search decodes the blocks that have the term. One
 * in a hundred thousand of the other blocks has it as well, and is decoded without a match.
 */
export function termOf(fact: SearchedFact, text: string): string {
  let hash: number = bases[fact];
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), fnvPrime);
  }
  const folded = hash ^ (hash >>> 24);
  return digitAt(folded >>> 18) + digitAt(folded >>> 12) + digitAt(folded >>> 6) + digitAt(folded);
}

/** The 24 bits of a term. */
export function termNumber(term: string): number {
  let number = 0;
  for (let at = 0; at < termCharacters; at++) {
    number = (number << 6) | (bitsOf[term.charCodeAt(at)] ?? 0);
  }
  return number;
}

function digitAt(bits: number): string {
  return digits[bits & 63] as string;
}

/** Computed once: nearly every read has one. */
const termsOfDisclosure: ReadonlyMap<string, string> = new Map(
  shownWords.flatMap((shown) =>
    throughWords.map(
      (through) =>
        [codeOf({ shown, through }), termOf('shown', shown) + termOf('through', through)] as const,
    ),
  ),
);

/** The beginning of the terms of a block whose entries have a source. */
export const sourcedMark = '.';

/** All terms of some entries, each once. */
export function entitiesOf(terms: readonly string[]): string {
  if (!terms.some((own) => own.startsWith(sourcedMark))) return earlierEntitiesOf(terms);
  const all = new Set<string>();
  let repeated: string | undefined;
  for (const own of terms) {
    const [, shared = own, unique = ''] = own.split(sourcedMark);
    if (shared !== repeated) addTerms(all, shared);
    addTerms(all, unique);
    repeated = shared;
  }
  return sourcedMark + [...all].join('');
}

function addTerms(all: Set<string>, terms: string): void {
  for (let at = 0; at < terms.length; at += termCharacters) {
    all.add(terms.slice(at, at + termCharacters));
  }
}

/** A term that is found across two others is not there itself. */
function earlierEntitiesOf(terms: readonly string[]): string {
  let all = '';
  for (const own of terms) {
    for (let at = 0; at < own.length; at += termCharacters) {
      const term = own.slice(at, at + termCharacters);
      if (!all.includes(term)) all += term;
    }
  }
  return all;
}

/**
 * A line of a body: the text, whose beginning is replaced by its length where the text before has the same
 * one. A text begins with a bracket, a shortened one with that number and a space.
 */
export function lineOf(text: string, before: string): string {
  const shared = sharedLength(text, before);
  return shared === 0 ? text : `${shared} ${text.slice(shared)}`;
}

function sharedLength(text: string, before: string): number {
  let length = 0;
  const max = Math.min(text.length, before.length);
  while (length < max && text.charCodeAt(length) === before.charCodeAt(length)) length++;
  // The halves of a surrogate pair cannot be stored alone.
  const isCut = length > 0 && (text.charCodeAt(length - 1) & 0xfc00) === 0xd800;
  return isCut ? length - 1 : length;
}

const shortenedForm = /^(\d{1,6}) /;

/**
 * The texts of the entries of a body. Of one that is larger than a block, those until it is: each line may stand
 * for much more than it has. See {@link haveBlockSize}.
 */
export function textsOf(body: string): string[] {
  const texts: string[] = [];
  let before = '';
  let characters = 0;
  for (const line of body.split('\n', blockMax.entries + 1)) {
    const [mark = '', shared = '0'] = shortenedForm.exec(line) ?? [];
    before = before.slice(0, Number(shared)) + line.slice(mark.length);
    texts.push(before);
    characters += before.length;
    if (!isBlockSize(texts.length, characters)) break;
  }
  return texts;
}

/** False for the texts of a body that is larger than a block, which are not all that it has. */
export function haveBlockSize(texts: readonly string[]): boolean {
  let characters = 0;
  for (const { length } of texts) characters += length;
  return isBlockSize(texts.length, characters);
}

/** What the block says; `undefined` when something of it is not as the vault writes it. */
export function openBlock(block: LogBlock): readonly PlacedEntry[] | undefined {
  const { tenant_id, stream_id, first_seq } = block;
  const texts = textsOf(block.body);
  if (!haveBlockSize(texts)) return undefined;
  const entries: PlacedEntry[] = [];
  for (const [index, text] of texts.entries()) {
    const facts = factsOf(text);
    if (facts === undefined) return undefined;
    entries.push({ tenant_id, stream_id, seq: first_seq + index, ...facts });
  }
  return entries;
}

/** The entries with their hashes; of the last the one that is stored, which no other is if the block was altered. */
export function chainBlock(previous: string, block: LogBlock): readonly ChainedEntry[] {
  let hash = previous;
  return (openBlock(block) ?? []).map((entry) => {
    hash = entryHash(hash, entry.seq, textOf(entry, entry.state));
    return { ...entry, hash: entry.seq === block.last_seq ? block.hash : hash };
  });
}

/** True when the columns by which entries are searched are those that follow from the texts. */
export function isExact(block: LogBlock, texts: readonly string[]): boolean {
  if (!haveBlockSize(texts)) return false;
  const facts: EntryFacts[] = [];
  for (const text of texts) {
    const one = factsOf(text);
    if (one === undefined || textOf({ tenant_id: block.tenant_id, ...one }, one.state) !== text)
      return false;
    facts.push(one);
  }
  const times = facts.map(({ created_at }) => created_at);
  return (
    block.last_at - block.first_at <= blockMax.spanMs &&
    block.last_seq === block.first_seq + facts.length - 1 &&
    block.first_at === Math.min(...times) &&
    block.last_at === Math.max(...times) &&
    block.entities === entitiesOf(facts.map(termsOf))
  );
}

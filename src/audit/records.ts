/** The log as a sequence of records: the lines that an export holds and a verifier reads. */
import { parseUuid, type TenantId } from '../base/ids.ts';
import { isObject } from '../base/json.ts';
import { chainBlock, type LogBlock } from '../store/log-chain/block.ts';
import { codeOf, type Disclosure, disclosureOf } from '../store/log-chain/disclosure.ts';
import { type ChainedEntry, type EntrySource, streamSeed } from '../store/log-chain/entries.ts';
import type { AlteredBlock } from '../store/queries/logs.ts';
import { openRemoval, type Signed } from './statements.ts';

/**
 * For each tenant: begin, removals, checkpoints, entries stream by stream, end. Statements precede
 * the entries they are about, so one pass is enough.
 */
export type LogRecord =
  | { readonly kind: 'begin' | 'end'; readonly tenant_id: TenantId }
  | { readonly kind: 'removal' | 'checkpoint'; readonly signed: Signed }
  | { readonly kind: 'entries'; readonly entries: readonly ChainedEntry[] }
  /** The entries as a database holds them. */
  | { readonly kind: 'blocks'; readonly blocks: readonly LogBlock[] }
  /** A block that was altered so that it cannot be read, and is left out; `seq` as in {@link AlteredBlock}. */
  | ({ readonly kind: 'altered' } & AlteredBlock)
  /** A line that is not exactly what an export writes. */
  | { readonly kind: 'unreadable'; readonly line: number };

export type LineRecord = Exclude<LogRecord, { readonly kind: 'blocks' }>;

/** The records of a database as those of an export: each entry with the hash that it was written with. */
export async function* asLines(records: AsyncIterable<LogRecord>): AsyncGenerator<LineRecord> {
  const ends = new Map<string, string>();
  for await (const record of records) {
    if (record.kind !== 'blocks') {
      const removal = record.kind === 'removal' ? openRemoval(record.signed) : undefined;
      if (removal) ends.set(`${removal.tenant_id} ${removal.stream_id}`, removal.last_hash);
      yield record;
      continue;
    }
    for (const block of record.blocks) {
      const { tenant_id, stream_id } = block;
      const stream = `${tenant_id} ${stream_id}`;
      const previous = ends.get(stream) ?? streamSeed(tenant_id, stream_id);
      yield { kind: 'entries', entries: chainBlock(previous, block) };
      ends.set(stream, block.hash);
    }
  }
}

/** The record as lines of newline-delimited JSON, the last newline included. */
export function formatRecord(record: LineRecord): string {
  const { kind } = record;
  if (kind === 'entries') return record.entries.map(formatEntry).join('');
  if (kind === 'unreadable') return '';
  if (kind === 'altered') {
    const { tenant_id, stream_id, seq } = record;
    return `${JSON.stringify({ kind, tenant_id, stream_id, seq })}\n`;
  }
  if (!('signed' in record)) return `${JSON.stringify({ kind, tenant_id: record.tenant_id })}\n`;
  const { statement, public_key, signature } = record.signed;
  return `${JSON.stringify({ kind, statement, public_key, signature })}\n`;
}

/** An entry as one line: its place and hash first, then the logged content. */
export function formatEntry(entry: ChainedEntry): string {
  const line = {
    kind: 'entry',
    tenant_id: entry.tenant_id,
    stream_id: entry.stream_id,
    seq: entry.seq,
    hash: entry.hash,
    created_at: entry.created_at,
    actor_id: entry.actor_id,
    actor_type: entry.actor_type,
    ...(entry.source && whoOf(entry.source)),
    entity_type: entry.entity_type,
    entity_id: entry.entity_id,
    operation: entry.operation,
    message: entry.message,
    result: entry.result,
    ...(entry.disclosure !== null && disclosureOf(entry.disclosure)),
    ...(entry.source && { container: entry.container }),
    origin: entry.origin,
    ...(entry.source && whereOf(entry.source)),
    trace_id: entry.trace_id,
    ...(entry.state !== null && { state: entry.state }),
  };
  return `${JSON.stringify(line)}\n`;
}

const whoOf = ({ application_id, key_id, person_id, person_name }: EntrySource) => ({
  application_id,
  key_id,
  person_id,
  person_name,
});

const whereOf = ({ user_agent, forwarded }: EntrySource) => ({ user_agent, forwarded });

const lineMembers = 15;
/** Of an entry with a source, and of its container. */
const sourceMembers = 7;
const disclosureMembers = 2;

/**
 * Reads one line. It must be the exact string that {@link formatRecord} writes: a reader would see any
 * addition, and no hash would cover it.
 */
export function parseLine(text: string, line: number): LineRecord {
  const unreadable: LineRecord = { kind: 'unreadable', line };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return unreadable;
  }
  if (!isObject(value)) return unreadable;
  const record = recordOf(value);
  return record && formatRecord(record) === `${text}\n` ? record : unreadable;
}

function recordOf(value: Readonly<Record<string, unknown>>): LineRecord | undefined {
  const { kind } = value;
  if (kind === 'entry') {
    const { state = null, shown, through } = value;
    const isShown = shown !== undefined || through !== undefined;
    const isSourced = 'key_id' in value;
    const members =
      lineMembers +
      (state === null ? 0 : 1) +
      (isShown ? disclosureMembers : 0) +
      (isSourced ? sourceMembers : 0);
    const whole = Object.keys(value).length === members;
    const disclosure = isShown ? codeOf({ shown, through } as Disclosure) : null;
    const source = isSourced
      ? { ...whoOf(value as unknown as EntrySource), ...whereOf(value as unknown as EntrySource) }
      : null;
    const { container = null } = value;
    const entry = { ...value, disclosure, source, container, state } as unknown as ChainedEntry;
    return whole ? { kind: 'entries', entries: [entry] } : undefined;
  }
  if (kind === 'removal' || kind === 'checkpoint') {
    return { kind, signed: value as unknown as Signed };
  }
  const tenant_id = parseUuid<TenantId>(String(value['tenant_id']));
  if (kind === 'altered') {
    const { stream_id, seq } = value;
    if (tenant_id === undefined || typeof stream_id !== 'string') return undefined;
    return Number.isSafeInteger(seq) ? { kind, tenant_id, stream_id, seq: Number(seq) } : undefined;
  }
  return tenant_id && (kind === 'begin' || kind === 'end') ? { kind, tenant_id } : undefined;
}

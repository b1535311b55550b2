/** An export of the log, verified line by line: its signatures, its chains of hashes, and that nothing is missing. */
import { bytesOf, subtle } from './bytes.ts';
import { linesOf, parseLine } from './lines.ts';
import {
  isPublishedWith,
  keysNamedIn,
  keysOf,
  type LogStatement,
  openStatement,
  type RemovalStatement,
  replacedMsMax,
  type SignedStatement,
  type TrustedKeys,
} from './verify-statements.ts';

/**
 * What an export of the log is compared with.
 *
 * @example
 * ```ts
 * import { type LogVerification, verifyLog } from '@strongroom/client/verify';
 *
 * const verification: LogVerification = { publicKeys, checkpoints: [checkpoint] };
 * const report = await verifyLog(logExport, verification);
 * ```
 */
export interface LogVerification extends TrustedKeys {
  /** Checkpoints that you stored elsewhere. Without one, nobody can tell that the newest entries are missing. */
  readonly checkpoints?: readonly SignedStatement[] | undefined;
}

/**
 * Something that is wrong with a log.
 *
 * @example
 * ```ts
 * import { type LogFinding, verifyLog } from '@strongroom/client/verify';
 *
 * const print = ({ kind, stream_id, seq, message }: LogFinding) =>
 *   console.log(kind, stream_id, seq, message);
 * const { findings } = await verifyLog(logExport, { publicKeys, checkpoints: [checkpoint] });
 * findings.forEach(print);
 * ```
 */
export interface LogFinding {
  readonly kind: 'edited' | 'deleted' | 'inserted' | 'truncated' | 'forged' | 'unreadable';
  readonly tenant_id?: string;
  readonly stream_id?: string;
  /** The number of the entry or the checkpoint; of an unreadable line, its number. */
  readonly seq: number;
  readonly message: string;
}

/**
 * The result of verifying a log.
 *
 * @example
 * ```ts
 * import { type LogReport, verifyLog } from '@strongroom/client/verify';
 *
 * const options = { publicKeys, checkpoints: [checkpoint] };
 * const report: LogReport = await verifyLog(logExport, options);
 * console.log(report.intact, report.entries, report.uncovered);
 * ```
 */
export interface LogReport {
  /** Whether nothing was found. */
  readonly intact: boolean;
  readonly entries: number;
  readonly streams: number;
  readonly checkpoints: number;
  /** Entries that retention removed, as signed. */
  readonly removed: number;
  /** Entries that are newer than every checkpoint: only the chain speaks for them. */
  readonly uncovered: number;
  /** The first of each stream, and all about statements and lines. */
  readonly findings: readonly LogFinding[];
}

interface Entry {
  readonly tenant_id: string;
  readonly stream_id: string;
  readonly seq: number;
  readonly hash: string;
  readonly created_at: number;
  readonly text: string;
}

interface Head {
  readonly seq: number;
  readonly hash: string;
}

/** Hashes are computed so many at a time: each says which one it follows. */
const entriesAtOnce = 500;
/** An entry that is older than the newest checkpoint by this much, and not covered by it, was put there later. */
const latenessMsMax = 3_600_000;

/**
 * Verifies an export of the log, the output of `strongroom logs export`. It reads the lines once, and what it keeps
 * grows with streams and checkpoints, not with entries.
 *
 * An intact report says that no entry was changed, removed or added up to the newest of `checkpoints`. What is newer is
 * `uncovered`: only a checkpoint that you stored elsewhere shows that the end of a log is missing.
 *
 * @param log the lines as text, or as they arrive: a file stream, the body of a response.
 * @throws ConfigurationError without keys.
 * @example
 * ```ts
 * import { verifyLog } from '@strongroom/client/verify';
 *
 * const report = await verifyLog(logExport, { publicKeys, checkpoints: [checkpoint] });
 * for (const { kind, stream_id, seq } of report.findings) console.log(kind, stream_id, seq);
 * console.log(report.intact ? 'The log is intact.' : 'The log was altered.');
 * ```
 */
export async function verifyLog(
  log: string | AsyncIterable<string | Uint8Array> | Iterable<string | Uint8Array>,
  verification: LogVerification,
): Promise<LogReport> {
  const walk = new LogWalk(keysOf(verification));
  for (const signed of verification.checkpoints ?? []) await walk.learnKept(signed);
  let waiting: Entry[] = [];
  let number = 0;
  for await (const line of linesOf(typeof log === 'string' ? [log] : log)) {
    number += 1;
    const value = parseLine(line);
    const entry = entryOf(value, line);
    if (entry) waiting.push(entry);
    if (entry === undefined || waiting.length >= entriesAtOnce) {
      await walk.takeEntries(waiting);
      waiting = [];
    }
    if (entry === undefined) await walk.takeOther(value, line, number);
  }
  await walk.takeEntries(waiting);
  return walk.finish();
}

/** The keys of a tenant's log in the order in which they sign. */
interface Succession {
  /** Keys that were introduced, with those that introduced them. */
  readonly introducedBy: Map<string, string>;
  /** Until when a key that was replaced may sign. */
  readonly signsUntil: Map<string, number>;
  at: number;
}

class LogWalk {
  readonly #trusted: ReadonlySet<string>;
  /** By tenant, the keys for which checkpoints of trusted ones vouch. */
  readonly #introduced = new Map<string, Map<string, true>>();
  readonly #findings: LogFinding[] = [];
  /** By tenant: statements of checkpoints by number, those that were stored elsewhere and those of the log. */
  readonly #kept = new Map<string, Map<number, string>>();
  readonly #successions = new Map<string, Succession>();
  readonly #last = new Map<string, { seq: number; statement: string | undefined }>();
  readonly #newestAt = new Map<string, number>();
  /** By tenant and stream: heads that checkpoints name, where entries begin, how far they have come. */
  readonly #known = new Map<string, Map<number, string>>();
  readonly #covered = new Map<string, number>();
  readonly #heads = new Map<string, Head>();
  readonly #removals = new Map<string, RemovalStatement>();
  readonly #broken = new Set<string>();
  readonly #open = new Set<string>();
  readonly #begun = new Set<string>();
  #entries = 0;
  #checkpoints = 0;
  #uncovered = 0;

  constructor(trusted: ReadonlySet<string>) {
    this.#trusted = trusted;
  }

  async learnKept(signed: SignedStatement): Promise<void> {
    const checkpoint = await this.#opened<LogStatement>(signed, 'checkpoint');
    if (checkpoint === undefined) return;
    const kept = mapAt(this.#kept, checkpoint.tenant_id);
    const other = kept.get(checkpoint.seq);
    if (other !== undefined && other !== signed.statement) {
      const message = 'two checkpoints that were kept have one number and say different things';
      this.#report({
        kind: 'edited',
        tenant_id: checkpoint.tenant_id,
        seq: checkpoint.seq,
        message,
      });
    }
    kept.set(checkpoint.seq, signed.statement);
    if (!isPublishedWith(signed, checkpoint)) {
      const { tenant_id, seq } = checkpoint;
      const message = `public_keys of the kept checkpoint ${seq} are not the keys that the log introduced`;
      this.#report({ kind: 'forged', tenant_id, seq, message });
    }
    this.#learn(checkpoint);
  }

  /** A line that is no entry. */
  async takeOther(value: unknown, line: string, number: number): Promise<void> {
    const record = value as Partial<SignedStatement> & { kind?: string; tenant_id?: string };
    const { kind, tenant_id = '' } = record ?? {};
    const isExact = (expected: object) => JSON.stringify(expected) === line;
    const { statement = '', public_key = '', signature = '' } = record ?? {};
    const signed = { statement, public_key, signature };
    if ((kind === 'begin' || kind === 'end') && isExact({ kind, tenant_id })) {
      if (kind === 'begin') this.#begun.add(tenant_id);
      if (kind === 'begin') this.#open.add(tenant_id);
      else this.#open.delete(tenant_id);
    } else if (kind === 'checkpoint' && isExact({ kind, ...signed })) {
      await this.#takeCheckpoint(signed);
    } else if (kind === 'removal' && isExact({ kind, ...signed })) {
      const removal = await this.#opened<RemovalStatement>(signed, 'removal');
      if (removal) this.#removals.set(nameOf(removal), removal);
    } else {
      const what = kind === 'altered' ? 'edited' : 'unreadable';
      const message = `line ${number} is not as a vault writes it`;
      this.#report({ kind: what, seq: number, message });
    }
  }

  async takeEntries(entries: readonly Entry[]): Promise<void> {
    this.#entries += entries.length;
    for (const entry of entries) await this.#begin(entry);
    const last = new Map<string, string>();
    const hashes = await Promise.all(
      entries.map((entry) => {
        const name = nameOf(entry);
        const previous = last.get(name) ?? this.#heads.get(name)?.hash ?? '';
        last.set(name, entry.hash);
        return sha256(`${previous}${entry.seq}${entry.text}`);
      }),
    );
    for (const [at, entry] of entries.entries()) this.#takeEntry(entry, hashes[at]);
  }

  finish(): LogReport {
    for (const [name, last] of this.#covered) {
      const [tenant_id = '', stream_id = ''] = name.split(' ');
      const { seq } = this.#heads.get(name) ?? this.#startOf(name) ?? { seq: 0 };
      if (seq < last) {
        const message = `entries ${seq + 1} to ${last} are known to a checkpoint, and missing at the end`;
        this.#break(name, { kind: 'truncated', tenant_id, stream_id, seq: seq + 1, message });
      }
    }
    for (const tenant_id of this.#open) {
      const message = 'the export ends before the end of the log';
      this.#report({ kind: 'truncated', tenant_id, seq: this.#entries + 1, message });
    }
    for (const [tenant_id, kept] of this.#kept) {
      let newest = 0;
      for (const one of kept.keys()) newest = Math.max(newest, one);
      const { seq } = this.#last.get(tenant_id) ?? { seq: 0 };
      if (!this.#begun.has(tenant_id)) {
        // Streams of which only earlier checkpoints knew could be missing without a trace.
        const message = 'the export has no beginning, and a checkpoint of the log was kept';
        this.#report({ kind: 'truncated', tenant_id, seq: 1, message });
      } else if (seq < newest) {
        const message = `checkpoints ${seq + 1} to ${newest} are missing, and the newest was kept`;
        this.#report({ kind: 'truncated', tenant_id, seq: seq + 1, message });
      }
    }
    let removed = 0;
    for (const { to_seq } of this.#removals.values()) removed += to_seq;
    return {
      intact: this.#findings.length === 0,
      entries: this.#entries,
      streams: this.#heads.size,
      checkpoints: this.#checkpoints,
      removed,
      uncovered: this.#uncovered,
      findings: this.#findings,
    };
  }

  async #takeCheckpoint(signed: SignedStatement): Promise<void> {
    this.#checkpoints += 1;
    const checkpoint = await this.#opened<LogStatement>(signed, 'checkpoint');
    if (checkpoint === undefined) return;
    const { tenant_id, seq, previous } = checkpoint;
    const last = this.#last.get(tenant_id) ?? { seq: 0, statement: undefined };
    const hash = last.statement === undefined ? null : await sha256(last.statement);
    const kept = this.#kept.get(tenant_id)?.get(seq);
    const found = (kind: LogFinding['kind'], message: string) =>
      this.#report({ kind, tenant_id, seq, message });
    if (seq > last.seq + 1) found('deleted', `checkpoints from ${last.seq + 1} on are missing`);
    else if (seq <= last.seq) found('inserted', `checkpoint ${seq} occurs twice`);
    else if (previous !== hash)
      found('edited', `checkpoint ${seq} does not continue the one before`);
    if (kept !== undefined && kept !== signed.statement) {
      found('edited', `checkpoint ${seq} is not the one that was kept`);
    }
    this.#last.set(tenant_id, { seq, statement: signed.statement });
    if (this.#isReplaced(signed.public_key, checkpoint)) {
      found('forged', `checkpoint ${seq} is signed by a key that had been replaced`);
    }
    this.#learn(checkpoint);
  }

  /** Whoever holds a key that was replaced, because it leaked, signs nothing with it any more. */
  #isReplaced(key: string, { tenant_id, created_at, introduces }: LogStatement): boolean {
    const known = this.#successions.get(tenant_id);
    const succession = known ?? { introducedBy: new Map(), signsUntil: new Map(), at: created_at };
    if (known === undefined) this.#successions.set(tenant_id, succession);
    const { introducedBy, signsUntil } = succession;
    const at = Math.max(succession.at, created_at);
    succession.at = at;
    const isOver = at > (signsUntil.get(key) ?? Number.POSITIVE_INFINITY);
    const before = introducedBy.get(key);
    if (before !== undefined && !signsUntil.has(before)) {
      signsUntil.set(before, created_at + replacedMsMax);
    }
    if (introduces !== undefined) introducedBy.set(introduces, key);
    return isOver;
  }

  #learn({ tenant_id, created_at, heads }: LogStatement): void {
    const newest = this.#newestAt.get(tenant_id) ?? created_at;
    this.#newestAt.set(tenant_id, Math.max(newest, created_at));
    for (const [stream, seq, hash] of heads) {
      const name = `${tenant_id} ${stream}`;
      const known = mapAt(this.#known, name);
      const other = known.get(seq);
      if (other !== undefined && other !== hash) {
        const message = `two checkpoints say different things about entry ${seq}`;
        this.#break(name, { kind: 'edited', tenant_id, stream_id: stream, seq, message });
      }
      // What has passed was not compared with it. An export has its statements before its entries.
      if (other === undefined && (this.#heads.get(name)?.seq ?? 0) >= seq) {
        const message = `a checkpoint comes after entry ${seq}, which it is about`;
        this.#break(name, { kind: 'unreadable', tenant_id, stream_id: stream, seq, message });
      }
      known.set(seq, hash);
      this.#covered.set(name, Math.max(this.#covered.get(name) ?? 0, seq));
    }
  }

  async #opened<Statement>(
    signed: SignedStatement,
    kind: 'checkpoint' | 'removal',
  ): Promise<Statement | undefined> {
    const statement = await openStatement(signed, kind);
    const { tenant_id } = (statement ?? {}) as Partial<LogStatement>;
    const introduced = mapAt(this.#introduced, tenant_id ?? '');
    const { public_key } = signed;
    if (tenant_id !== undefined && (this.#trusted.has(public_key) || introduced.has(public_key))) {
      if (kind === 'checkpoint') {
        for (const key of keysNamedIn(statement as LogStatement)) introduced.set(key, true);
      }
      return statement as Statement;
    }
    const message = `a ${kind} is not signed, or not by a key that is trusted`;
    this.#report({ kind: 'forged', seq: this.#checkpoints, message });
    return undefined;
  }

  /** Where the stream of an entry begins: at its seed, or after what retention removed. */
  async #begin(entry: Entry): Promise<void> {
    const name = nameOf(entry);
    if (this.#heads.has(name)) return;
    const start = this.#startOf(name);
    if (start) this.#compare(name, entry, start);
    const seed = ['strongroom log stream', 1, entry.tenant_id, entry.stream_id];
    this.#heads.set(name, start ?? { seq: 0, hash: await sha256(JSON.stringify(seed)) });
  }

  #startOf(name: string): Head | undefined {
    const removal = this.#removals.get(name);
    return removal && { seq: removal.to_seq, hash: removal.last_hash };
  }

  #takeEntry(entry: Entry, expected: string | undefined): void {
    const { tenant_id, stream_id, seq, hash, created_at } = entry;
    const name = nameOf(entry);
    const head = this.#heads.get(name);
    if (head === undefined || this.#broken.has(name)) return;
    const found = (kind: LogFinding['kind'], at: number, message: string) =>
      this.#break(name, { kind, tenant_id, stream_id, seq: at, message });
    const next = head.seq + 1;
    if (seq > next) found('deleted', next, `entries ${next} to ${seq - 1} are missing`);
    else if (seq < next) found('inserted', seq, `entry ${seq} occurs twice, or was moved`);
    else if (hash !== expected) {
      found('edited', seq, `entry ${seq} or its hash was edited, or entries before it removed`);
    }
    if (this.#broken.has(name)) return;
    this.#heads.set(name, { seq, hash });
    this.#compare(name, entry, { seq, hash });
    if ((this.#covered.get(name) ?? 0) >= seq) return;
    this.#uncovered += 1;
    const newest = this.#newestAt.get(tenant_id);
    if (newest === undefined || created_at >= newest - latenessMsMax) return;
    found('inserted', seq, `entry ${seq} is older than a checkpoint that does not know of it`);
  }

  #compare(name: string, { tenant_id, stream_id }: Entry, { seq, hash }: Head): void {
    const known = this.#known.get(name)?.get(seq);
    if (known === undefined || known === hash) return;
    const message = `entries up to ${seq} are not as a checkpoint recorded them`;
    this.#break(name, { kind: 'edited', tenant_id, stream_id, seq, message });
  }

  /** What follows in the stream says nothing more. */
  #break(name: string, finding: LogFinding): void {
    if (!this.#broken.has(name)) this.#report(finding);
    this.#broken.add(name);
  }

  #report(finding: LogFinding): void {
    this.#findings.push(finding);
  }
}

function mapAt<Key, Value>(maps: Map<string, Map<Key, Value>>, name: string): Map<Key, Value> {
  const map = maps.get(name) ?? new Map<Key, Value>();
  maps.set(name, map);
  return map;
}

function nameOf({ tenant_id, stream_id }: { tenant_id: string; stream_id: string }): string {
  return `${tenant_id} ${stream_id}`;
}

async function sha256(text: string): Promise<string> {
  const digest = await subtle().digest('SHA-256', bytesOf(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

const shownLetters = { revealed: 'r', masked: 'm', redacted: 'x' };
const throughLetters = {
  get: 'g',
  list: 'l',
  search: 's',
  detokenize: 'd',
  export: 'e',
  create: 'c',
  update: 'u',
  replay: 'y',
  proxy: 'p',
  reactor: 'r',
};

const letterOf = (letters: object, word: unknown): string | undefined =>
  Object.entries(letters).find(([known]) => known === word)?.[1];

/**
 * An entry, and the text that its hash is over. The line must be exactly what a vault writes, because no hash covers
 * what was added to it.
 */
function entryOf(value: unknown, line: string): Entry | undefined {
  const fields = value as Readonly<Record<string, unknown>> | undefined;
  if (fields?.['kind'] !== 'entry') return undefined;
  const {
    tenant_id,
    stream_id,
    seq,
    hash,
    created_at,
    actor_id,
    actor_type,
    entity_type,
    entity_id,
    operation,
    message,
    result,
    shown,
    through,
    origin,
    trace_id,
    state,
  } = fields;
  const { application_id = null, key_id = null, person_id = null, person_name = null } = fields;
  const { container = null, user_agent = null, forwarded = null } = fields;
  // Releases that recorded none of these wrote lines without them.
  const isSourced = 'key_id' in fields;
  const code = `${letterOf(shownLetters, shown)}${letterOf(throughLetters, through)}`;
  const isRead = shown !== undefined || through !== undefined;
  const exact = {
    kind: 'entry',
    tenant_id,
    stream_id,
    seq,
    hash,
    created_at,
    actor_id,
    actor_type,
    ...(isSourced && { application_id, key_id, person_id, person_name }),
    entity_type,
    entity_id,
    operation,
    message,
    result,
    ...(isRead && { shown, through }),
    ...(isSourced && { container }),
    origin,
    ...(isSourced && { user_agent, forwarded }),
    trace_id,
    ...(state !== undefined && { state }),
  };
  const isForm =
    [tenant_id, stream_id, hash].every((text) => typeof text === 'string') &&
    Number.isSafeInteger(seq) &&
    Number.isSafeInteger(created_at) &&
    (!isRead || code.length === 2) &&
    state !== null &&
    JSON.stringify(exact) === line;
  if (!isForm) return undefined;
  const who = [actor_type, actor_id, key_id, application_id, person_id, person_name];
  const text = JSON.stringify([
    ...(isSourced
      ? [trimmed(who), trimmed([origin, user_agent, forwarded])]
      : [actor_id, actor_type, origin]),
    entity_type,
    operation,
    message,
    result,
    isRead ? code : null,
    ...(isSourced ? [container] : []),
    created_at,
    entity_id,
    trace_id,
    ...(state === undefined ? [] : [state]),
  ]);
  return { tenant_id, stream_id, seq, hash, created_at, text } as Entry;
}

/** Without the nulls at its end. */
function trimmed(facts: readonly unknown[]): readonly unknown[] {
  let end = facts.length;
  while (end > 0 && facts[end - 1] === null) end -= 1;
  return facts.slice(0, end);
}

/** What log entries say about the rows that their change wrote, so that the log explains the database. */
import { type Container, parseContainer, rootContainer } from '../base/container.ts';
import { type WrittenEntry, writtenEntry } from './log-chain/block.ts';
import type { LogEntry, StatedEntry } from './log-chain/entries.ts';
import { type AnyRow, shapes } from './tables.ts';

interface ExplainedTable {
  /** The entity type of the table's rows in log entries. */
  readonly entity: string;
  /** The column that entries name it by, unique within the tenant. */
  readonly id: string;
  /** The column that authenticates the whole row: a proof, or the tag at the end of sealed data. */
  readonly by: 'proof' | 'data' | 'body';
}

/**
 * The tables whose rows the log explains. Search terms follow from tokens and addresses from proxies, stored
 * responses are sealed and removed within a day, events are sealed, and the log has its own proof.
 */
export const explainedTables = {
  tenants: { entity: 'tenant', id: 'tenant_id', by: 'proof' },
  applications: { entity: 'application', id: 'application_id', by: 'proof' },
  api_keys: { entity: 'application_key', id: 'key_id', by: 'proof' },
  sessions: { entity: 'session', id: 'session_id', by: 'proof' },
  proxies: { entity: 'proxy', id: 'proxy_id', by: 'proof' },
  reactors: { entity: 'reactor', id: 'reactor_id', by: 'proof' },
  reactor_runs: { entity: 'reactor_run', id: 'run_id', by: 'body' },
  tenant_hosts: { entity: 'tenant_host', id: 'host', by: 'proof' },
  client_keys: { entity: 'key', id: 'client_key_id', by: 'proof' },
  client_key_uses: { entity: 'key_use', id: 'use_id', by: 'proof' },
  webhooks: { entity: 'webhook', id: 'webhook_id', by: 'proof' },
  people: { entity: 'person', id: 'person_id', by: 'proof' },
  console_links: { entity: 'console_link', id: 'link_id', by: 'proof' },
  console_sessions: { entity: 'console_session', id: 'session_id', by: 'proof' },
  sign_in_methods: { entity: 'sign_in_method', id: 'method_id', by: 'proof' },
  approvals: { entity: 'approval', id: 'approval_id', by: 'proof' },
  tokens: { entity: 'token', id: 'token_id', by: 'data' },
  token_intents: { entity: 'token_intent', id: 'token_intent_id', by: 'data' },
} as const satisfies Record<string, ExplainedTable>;

export type ExplainedName = keyof typeof explainedTables;

/** Tables whose rows carry a proof. The others have none: their sealed data is bound to the rest of the row. */
export type ProvenTable = {
  [T in ExplainedName]: (typeof explainedTables)[T]['by'] extends 'proof' ? T : never;
}[ExplainedName];

export const explainedNames = Object.keys(explainedTables) as readonly ExplainedName[];

type RowsByTable = Readonly<Record<string, readonly object[] | undefined>>;

/** A change, as far as it matters here. */
interface WrittenChange {
  readonly insert?: RowsByTable;
  readonly replace?: RowsByTable;
  readonly reseal?: RowsByTable;
  readonly refingerprint?: RowsByTable;
  readonly remove?: RowsByTable;
  readonly entries: readonly LogEntry[];
  readonly unexplained?: true;
}

/** The row was created, replaced its previous version, or was removed in the version that it had. */
export type Sign = '+' | '=' | '-';

/** What an entry says of one row. */
export interface Mark {
  readonly sign: Sign;
  readonly table: ExplainedName;
  readonly id: string;
  readonly version: number;
  /** See {@link authenticatorOf}; empty for a row that is gone. */
  readonly authenticator: string;
  /** The entry is about this row. */
  readonly isOwn: boolean;
  /** Of a token that is gone; absent in entries of releases that did not record it. */
  readonly remains?: TokenRemains;
}

/**
 * What the log still says of a token that is gone: the version of the data key that sealed it, and the container, which
 * decides who may ask about its erasure.
 */
export interface TokenRemains {
  readonly data_version: number;
  readonly container: Container;
}

/** The length of the tag of sealed data, which is its end. */
const tagBytes = 16;

/**
 * The mark of a row in the log. An attacker without the tenant's keys cannot create another row with the same mark.
 */
export function authenticatorOf(table: ExplainedName, row: AnyRow): string {
  const { by } = explainedTables[table];
  if (by === 'proof') return String(row['proof']);
  const data = row[by];
  if (!(data instanceof Uint8Array)) return '';
  const { buffer, byteOffset, byteLength } = data;
  const length = Math.min(tagBytes, byteLength);
  return Buffer.from(buffer, byteOffset + byteLength - length, length).toString('base64url');
}

const actions = [
  ['insert', '+'],
  ['replace', '='],
  ['reseal', '='],
  ['refingerprint', '='],
  ['remove', '-'],
] as const;

/**
 * The entries of a change, which together record what happened to every row of the tables above: each row by the
 * entry about it, else by the one about the row that owns it, else by the first entry of the change.
 */
export function statedEntries(change: WrittenChange): readonly WrittenEntry[] {
  const { entries } = change;
  const marks = change.unexplained ? [] : marksOf(change);
  if (marks.length === 0) return entries.map((entry) => writtenEntry(entry, null));
  const placeOf = placesIn(entries);
  const states: string[] = [];
  for (const mark of marks) {
    const own = placeOf(explainedTables[mark.table].entity, mark.id);
    const { owner } = mark;
    const place = own ?? (owner && placeOf(owner.entity, owner.id)) ?? 0;
    const text = formatMark(mark, own !== undefined);
    const known = states[place];
    states[place] = known === undefined ? text : `${known} ${text}`;
  }
  return entries.map((entry, index) => writtenEntry(entry, states[index] ?? null));
}

/** True for a change whose entries say something of rows. */
export function changesExplainedRows(change: WrittenChange): boolean {
  if (change.unexplained) return false;
  return actions.some(([action]) => {
    const rowsByTable = change[action];
    return rowsByTable !== undefined && explainedNames.some((table) => rowsByTable[table]?.length);
  });
}

interface RowMark extends Omit<Mark, 'isOwn'> {
  /** The row that owns this one, as entries call it. */
  readonly owner: { readonly entity: string; readonly id: string } | undefined;
}

function marksOf(change: WrittenChange): RowMark[] {
  const marks: RowMark[] = [];
  for (const [action, sign] of actions) {
    const rowsByTable = change[action];
    if (!rowsByTable) continue;
    for (const table of explainedNames) {
      const rows = rowsByTable[table] as readonly AnyRow[] | undefined;
      if (!rows) continue;
      const id = explainedTables[table].id;
      for (const row of rows) {
        const gone = sign === '-' || (table === 'tenants' && row['deleted_at'] !== null);
        marks.push({
          sign: gone ? '-' : sign,
          table,
          id: String(row[id]),
          // The row of a deleted tenant stays as a tombstone. The version before it is the one that ends.
          version: versionOf(row) - (gone && sign === '=' ? 1 : 0),
          authenticator: gone ? '' : authenticatorOf(table, row),
          owner: ownerIn(table, row),
          ...(sign === '-' && table === 'tokens' && { remains: remainsIn(row) }),
        });
      }
    }
  }
  return marks;
}

/** Every change that removes a token names these columns: see `RemovedRow`. An altered container is taken for `/`. */
function remainsIn(row: AnyRow): TokenRemains {
  const { data_version, container } = row;
  return {
    data_version: Number(data_version),
    container: parseContainer(String(container)) ?? rootContainer,
  };
}

function ownerIn(table: ExplainedName, row: AnyRow): RowMark['owner'] {
  const owner = explainedOwnerOf(table);
  if (owner === undefined) return undefined;
  const { entity, id } = explainedTables[owner];
  const value = row[id];
  return typeof value === 'string' ? { entity, id: value } : undefined;
}

/** The explained table to whose rows those of the table belong. */
export function explainedOwnerOf(table: ExplainedName): ExplainedName | undefined {
  return explainedOwners[table];
}

const explainedOwners = Object.fromEntries(
  explainedNames.map((table) => {
    const { owner } = shapes[table];
    return [table, explainedNames.find((name) => name === owner)];
  }),
) as Readonly<Record<ExplainedName, ExplainedName | undefined>>;

/** Rows of a table without versions are never replaced. */
export function versionOf(row: AnyRow): number {
  return Number(row['version'] ?? 1);
}

/** The indexes of the first entry about each row that records a change. */
function placesIn(
  entries: readonly LogEntry[],
): (entity: string, id: string) => number | undefined {
  const changes = (entry: LogEntry) => entry.operation !== 'read' && entry.result === 'success';
  const [only] = entries;
  if (only && entries.length === 1) {
    return (entity, id) =>
      only.entity_id === id && only.entity_type === entity && changes(only) ? 0 : undefined;
  }
  const places = new Map<string, number>();
  entries.forEach((entry, place) => {
    const name = `${entry.entity_type} ${entry.entity_id}`;
    if (changes(entry) && !places.has(name)) places.set(name, place);
  });
  return (entity, id) => places.get(`${entity} ${id}`);
}

function formatMark(mark: RowMark, isOwn: boolean): string {
  const { sign, table, id, version, authenticator, remains } = mark;
  const details = sign === '-' ? remains && formatRemains(remains) : authenticator;
  const row = details === undefined ? `${sign}${version}` : `${sign}${version}.${details}`;
  return isOwn ? row : `${row}@${table}:${encodeURIComponent(id)}`;
}

/** In characters that a mark of any release can have. */
function formatRemains({ data_version, container }: TokenRemains): string {
  return `${data_version}.${Buffer.from(container).toString('base64url')}`;
}

function parseRemains(text: string): TokenRemains | undefined {
  const [, version, encoded = ''] = /^([0-9]+)\.([A-Za-z0-9_-]+)$/.exec(text) ?? [];
  const container = parseContainer(Buffer.from(encoded, 'base64url').toString('utf8'));
  if (version === undefined || container === undefined) return undefined;
  return { data_version: Number(version), container };
}

const markForm = /^([+=-])([0-9]+)(?:\.([A-Za-z0-9_.-]*))?(?:@([a-z_]+):(\S+))?$/;

const tablesByEntity: ReadonlyMap<string, ExplainedName> = new Map(
  explainedNames.map((table) => [explainedTables[table].entity, table]),
);

/** What an entry says about rows; nothing if it cannot be parsed. */
export function marksOfEntry(
  entry: Pick<StatedEntry, 'state' | 'entity_type' | 'entity_id'>,
): readonly Mark[] {
  const { state, entity_type, entity_id } = entry;
  if (state === null) return [];
  return state.split(' ').flatMap((text) => {
    const [, sign, version, details = '', named, name] = markForm.exec(text) ?? [];
    const table = named === undefined ? tablesByEntity.get(entity_type) : tableOf(named);
    if (sign === undefined || table === undefined) return [];
    const id = name === undefined ? entity_id : decodeURIComponent(name);
    const isOwn = name === undefined;
    const remains = sign === '-' ? parseRemains(details) : undefined;
    const authenticator = sign === '-' ? '' : details;
    const mark = { sign: sign as Sign, table, id, version: Number(version), authenticator, isOwn };
    return [remains ? { ...mark, remains } : mark];
  });
}

function tableOf(name: string): ExplainedName | undefined {
  return explainedNames.find((table) => table === name);
}

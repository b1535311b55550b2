/** What the log says of a key or a token, in figures: who did what, from where, when first and last. */
import type { Instant } from '../base/clock.ts';
import type { TenantId } from '../base/ids.ts';
import { disclosureOf } from '../store/log-chain/disclosure.ts';
import type { PlacedEntry } from '../store/log-chain/entries.ts';
import type { Store } from '../store/store.ts';
import { findLogs, type LogFilter, type LogPosition, logPositionOf, sessionOf } from './find.ts';

const entriesAtOnce = 2_000;

/** All entries that match, newest first. */
export async function* allLogs(
  store: Pick<Store, 'select' | 'scan'>,
  filter: LogFilter,
): AsyncGenerator<PlacedEntry> {
  let after: LogPosition | undefined;
  for (;;) {
    const found = await findLogs(store, { ...filter, after, skip: 0, limit: entriesAtOnce });
    yield* found;
    const last = found.at(-1);
    if (last === undefined || found.length < entriesAtOnce) return;
    after = logPositionOf(last);
  }
}

/** What one key did with one token from one address. */
export interface TokenUse {
  readonly key_id: string | null;
  readonly application_id: string | null;
  readonly session_id: string | null;
  readonly address: string | null;
  readonly token_id: string;
  count: number;
  revealed: number;
  masked: number;
  refused: number;
  /** How often each operation succeeded. */
  readonly operations: Record<string, number>;
  first: Instant;
  last: Instant;
}

/** One for each key, address and token, most recently used first. */
export async function tokenUses(entries: AsyncIterable<PlacedEntry>): Promise<TokenUse[]> {
  const uses = new Map<string, TokenUse>();
  for await (const entry of entries) {
    if (!isAboutToken(entry)) continue;
    const use = useOf(uses, entry);
    const times = timesOf(entry);
    use.count += times;
    use.first = entry.created_at < use.first ? entry.created_at : use.first;
    use.last = entry.created_at > use.last ? entry.created_at : use.last;
    if (entry.result !== 'success') {
      use.refused += times;
      continue;
    }
    use.operations[entry.operation] = (use.operations[entry.operation] ?? 0) + times;
    const shown = shownOf(entry);
    if (shown === 'revealed' || shown === 'masked') use[shown] += times;
  }
  return [...uses.values()].sort((one, two) => two.last - one.last);
}

function useOf(uses: Map<string, TokenUse>, entry: PlacedEntry): TokenUse {
  const { source, origin, entity_id, created_at } = entry;
  const key_id = source?.key_id ?? null;
  const application_id = applicationOf(entry);
  const name = JSON.stringify([key_id ?? application_id, origin, entity_id]);
  const use = uses.get(name) ?? {
    key_id,
    application_id,
    session_id: sessionOf(entry),
    address: origin,
    token_id: entity_id,
    count: 0,
    revealed: 0,
    masked: 0,
    refused: 0,
    operations: {},
    first: created_at,
    last: created_at,
  };
  uses.set(name, use);
  return use;
}

/** With whose rights it was done. */
export function applicationOf({
  actor_type,
  actor_id,
  source,
}: Pick<PlacedEntry, 'actor_type' | 'actor_id' | 'source'>): string | null {
  return actor_type === 'application' ? actor_id : (source?.application_id ?? null);
}

export const shownOf = ({ disclosure }: PlacedEntry) =>
  disclosure === null ? undefined : disclosureOf(disclosure)?.shown;

/** An entry about one token or token intent, which exists or existed. */
function isAboutToken({ entity_type, entity_id, tenant_id }: PlacedEntry): boolean {
  const isToken = entity_type === 'token' || entity_type === 'token_intent';
  return isToken && entity_id !== '*' && entity_id !== tenant_id;
}

/** Refusals that repeat are one entry with their number; see `refusals.ts`. A bulk request that repeats has two. */
export function timesOf({ message, result }: Pick<PlacedEntry, 'message' | 'result'>): number {
  if (result === 'success') return 1;
  const [counts] = /(?: \(\d+ times\))*$/.exec(message) ?? [''];
  return (counts.match(/\d+/g) ?? []).reduce((times, count) => times * Number(count), 1);
}

/** How often something was done, and with how many tokens. */
export interface Figure {
  readonly events: number;
  readonly tokens: number;
}

export interface AddressUse {
  readonly address: string;
  readonly events: number;
  readonly first: Instant;
  readonly last: Instant;
}

/** What was done with a key, or by the sessions that came from it. */
export interface KeyFigures {
  readonly revealed: Figure;
  readonly masked: Figure;
  readonly created: Figure;
  readonly updated: Figure;
  readonly deleted: Figure;
  readonly refused: Figure;
  /** In the order in which they were first seen. */
  readonly addresses: readonly AddressUse[];
  /** What was done with anything but tokens, such as an application that was created. */
  readonly others: readonly OtherDeed[];
  /** The sessions that were opened or authorized. */
  readonly sessions: readonly string[];
  readonly applications: readonly string[];
  readonly first: Instant | null;
  readonly last: Instant | null;
}

export interface OtherDeed {
  readonly entity_type: string;
  readonly operation: string;
  readonly result: string;
  readonly events: number;
}

const figureNames = ['revealed', 'masked', 'created', 'updated', 'deleted', 'refused'] as const;
type FigureName = (typeof figureNames)[number];

const figureOfOperation: Readonly<Record<string, FigureName>> = {
  create: 'created',
  update: 'updated',
  delete: 'deleted',
};

class Tally {
  events = 0;
  readonly #tokens = new Set<string>();

  count(times: number, token: string | undefined): void {
    this.events += times;
    if (token !== undefined) this.#tokens.add(token);
  }

  get figure(): Figure {
    return { events: this.events, tokens: this.#tokens.size };
  }
}

/** Adds up entries in any order. A token that a key created and then read counts for both. */
async function figuresOf(entries: AsyncIterable<PlacedEntry>): Promise<KeyFigures> {
  const tallies = Object.fromEntries(figureNames.map((name) => [name, new Tally()])) as Readonly<
    Record<FigureName, Tally>
  >;
  const addresses = new Map<string, AddressUse>();
  const others = new Map<string, OtherDeed>();
  const sessions = new Set<string>();
  const applications = new Set<string>();
  let first: Instant | null = null;
  let last: Instant | null = null;
  for await (const entry of entries) {
    const { created_at: at, entity_type, entity_id, operation, result, origin } = entry;
    const times = timesOf(entry);
    const about = isAboutToken(entry) ? entity_id : undefined;
    for (const name of figuresIn(entry)) tallies[name].count(times, about);
    first = first === null || at < first ? at : first;
    last = last === null || at > last ? at : last;
    const application = applicationOf(entry);
    if (application !== null) applications.add(application);
    if (origin !== null)
      addresses.set(origin, seenAt(addresses.get(origin), { origin, at, times }));
    if (about !== undefined) continue;
    if (entity_type === 'session' && result === 'success') sessions.add(entity_id);
    const name = `${entity_type} ${operation} ${result}`;
    const events = (others.get(name)?.events ?? 0) + times;
    others.set(name, { entity_type, operation, result, events });
  }
  const figure = (name: FigureName) => [name, tallies[name].figure] as const;
  const figures = Object.fromEntries(figureNames.map(figure)) as Record<FigureName, Figure>;
  return {
    ...figures,
    addresses: [...addresses.values()].sort((one, two) => one.first - two.first),
    others: [...others.values()].sort((one, two) => two.events - one.events),
    sessions: [...sessions].sort(),
    applications: [...applications].sort(),
    first,
    last,
  };
}

/** What an entry counts as: a creation that showed a token counts twice. */
function figuresIn(entry: PlacedEntry): readonly FigureName[] {
  if (entry.result !== 'success') return ['refused'];
  const shown = shownOf(entry);
  const done = isAboutToken(entry) ? figureOfOperation[entry.operation] : undefined;
  return [
    ...(shown === 'revealed' || shown === 'masked' ? [shown] : []),
    ...(done === undefined ? [] : [done]),
  ];
}

interface Sighting {
  readonly origin: string;
  readonly at: Instant;
  readonly times: number;
}

function seenAt(known: AddressUse | undefined, { origin, at, times }: Sighting): AddressUse {
  if (known === undefined) return { address: origin, events: times, first: at, last: at };
  return {
    address: origin,
    events: known.events + times,
    first: at < known.first ? at : known.first,
    last: at > known.last ? at : known.last,
  };
}

/** Entries of one tenant from one instant until another. */
export interface LogSpan {
  readonly tenant: TenantId;
  readonly oldest: Instant;
  readonly until?: Instant | undefined;
  readonly index?: LogFilter['index'];
}

/** A filter that names nothing but the span. */
function spanFilter({ tenant, oldest, until, index }: LogSpan): LogFilter {
  return { tenant, oldest, until, index, entity_type: undefined, entity_id: undefined };
}

/** What was done with a key itself, and by each session that it opened or authorized in that time. */
export interface Incident {
  readonly key: KeyFigures;
  readonly sessions: readonly (KeyFigures & { readonly session_id: string })[];
}

export async function incidentOf(
  store: Pick<Store, 'select' | 'scan'>,
  span: LogSpan,
  key_id: string,
): Promise<Incident> {
  const key = await figuresOf(allLogs(store, { ...spanFilter(span), key_id }));
  const sessions: Incident['sessions'][number][] = [];
  for (const session_id of key.sessions) {
    const done = await figuresOf(allLogs(store, { ...spanFilter(span), session_id }));
    sessions.push({ session_id, ...done });
  }
  return { key, sessions };
}

/** What a caller has opened and no log entry covers yet. */
import assert from 'node:assert/strict';
import { type OpenedBinding, type OpeningGrant, openingGrant } from '../keys/envelope.ts';
import type { LogEntry } from '../store/log-chain/entries.ts';

/** A value that a caller opened. */
export interface OpenedForCaller extends OpenedBinding {
  /**
   * Whether its request finds something out about the value whatever comes of it, because expressions of the caller's
   * own are evaluated over it: whether one of them fails is a fact about the value.
   */
  readonly isTested?: true;
}

/** The values that a caller opened in a decision and that no change covers yet. */
export class Openings {
  #opened: OpenedForCaller[] | undefined;

  /** Only for `openings.ts`. */
  get asGrant(): OpeningGrant {
    return openingGrant(this);
  }

  /** The same for what the request tests. */
  get asTest(): OpeningGrant {
    return openingGrant({ opened: ({ id, field }) => this.opened({ id, field, isTested: true }) });
  }

  /** Called for each opened value. */
  opened(what: OpenedForCaller): void {
    if (this.#opened) this.#opened.push(what);
    else this.#opened = [what];
  }

  /** All opened values that were not taken. */
  get known(): readonly OpenedForCaller[] {
    return this.#opened ?? nothing;
  }

  /** Returns the opened values that no entry covers, and forgets all of them. */
  take(entries: readonly LogEntry[]): readonly OpenedForCaller[] {
    const unspoken = this.unspoken(entries);
    this.#opened = undefined;
    return unspoken;
  }

  /** The same without forgetting them. */
  unspoken(entries: readonly LogEntry[]): readonly OpenedForCaller[] {
    const opened = this.#opened;
    if (opened === undefined) return nothing;
    const [first, second] = entries;
    // The common case. The sets below would cost more than the rest of this function.
    if (first && !second) return opened.filter((one) => !speaksOf(first, one));
    const spoken = new Set<string>();
    for (const { entity_type, entity_id } of entries) {
      spoken.add(entity_type);
      spoken.add(`${entity_type} ${entity_id}`);
    }
    return opened.filter(({ field, id }) => {
      const { entity, byId } = accountOf(field);
      return !spoken.has(byId ? `${entity} ${id}` : entity);
    });
  }
}

const nothing: readonly OpenedForCaller[] = [];

function speaksOf({ entity_type, entity_id }: LogEntry, { field, id }: OpenedBinding): boolean {
  const { entity, byId } = accountOf(field);
  return entity_type === entity && (!byId || entity_id === id);
}

interface Account {
  /** The entity type in log entries. */
  readonly entity: string;
  /** Whether an entry has to name the id. Otherwise an entry about the type is enough, such as that of a list. */
  readonly byId: boolean;
}

/** By the sealed field. Each value needs its own entry; one entry of a list covers its settings. */
const accounts: Readonly<Record<string, Account>> = {
  data: { entity: 'token', byId: true },
  'token_intent.data': { entity: 'token_intent', byId: true },
  jwe: { entity: 'key', byId: true },
  reply: { entity: 'idempotency_key', byId: false },
  'reactor_run.body': { entity: 'reactor', byId: false },
  'proxy.body': { entity: 'proxy', byId: false },
  'reactor.body': { entity: 'reactor', byId: false },
  'webhook.body': { entity: 'webhook', byId: false },
  'approval.body': { entity: 'approval', byId: false },
};

/** How the log accounts for a field. Fails for a field that callers never open. */
export function accountOf(field: string): Account {
  const account = accounts[field];
  assert(
    account !== undefined,
    `nothing says how ${field} is accounted for when a caller opens it`,
  );
  return account;
}

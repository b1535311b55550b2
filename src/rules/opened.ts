/** What a caller has opened and no entry of the log speaks of yet. */
import assert from 'node:assert/strict';
import { type OpenedBinding, type OpeningGrant, openingGrant } from '../keys/envelope.ts';
import type { LogEntry } from '../store/log-chain/entries.ts';

/** What a caller opened in a decision, as far as no change speaks of it yet. */
export class Openings {
  #opened: OpenedBinding[] | undefined;

  /** For `openings.ts` alone. */
  get asGrant(): OpeningGrant {
    return openingGrant(this);
  }

  /** Called with each that is opened. */
  opened(what: OpenedBinding): void {
    if (this.#opened) this.#opened.push(what);
    else this.#opened = [what];
  }

  /** All that was opened and not taken. */
  get known(): readonly OpenedBinding[] {
    return this.#opened ?? nothing;
  }

  /** What none of the entries speaks of. From then on it is forgotten. */
  take(entries: readonly LogEntry[]): readonly OpenedBinding[] {
    const unspoken = this.unspoken(entries);
    this.#opened = undefined;
    return unspoken;
  }

  /** The same, which is remembered. */
  unspoken(entries: readonly LogEntry[]): readonly OpenedBinding[] {
    const opened = this.#opened;
    if (opened === undefined) return nothing;
    const [first, second] = entries;
    // Of nearly all requests, for which the names below would cost more than all else here.
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

const nothing: readonly OpenedBinding[] = [];

function speaksOf({ entity_type, entity_id }: LogEntry, { field, id }: OpenedBinding): boolean {
  const { entity, byId } = accountOf(field);
  return entity_type === entity && (!byId || entity_id === id);
}

interface Account {
  /** As entries call what was opened. */
  readonly entity: string;
  /** Whether an entry has to name it; otherwise one of its kind does, such as that of a list. */
  readonly byId: boolean;
}

/** By the field of what is sealed. Of values each is named; of settings a list is one entry. */
const accounts: Readonly<Record<string, Account>> = {
  data: { entity: 'token', byId: true },
  'token_intent.data': { entity: 'token_intent', byId: true },
  jwe: { entity: 'key', byId: true },
  reply: { entity: 'idempotency_key', byId: false },
  'reactor_run.body': { entity: 'reactor', byId: false },
  'proxy.body': { entity: 'proxy', byId: false },
  'reactor.body': { entity: 'reactor', byId: false },
  'webhook.body': { entity: 'webhook', byId: false },
};

/** How the log accounts for a field; fails for one that callers never open. */
export function accountOf(field: string): Account {
  const account = accounts[field];
  assert(
    account !== undefined,
    `nothing says how ${field} is accounted for when a caller opens it`,
  );
  return account;
}

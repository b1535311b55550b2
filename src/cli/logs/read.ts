/** `strongroom logs list`, `who`, `what` and `follow`: the log for people who look for something in it. */
import { setTimeout as pause } from 'node:timers/promises';
import type { LogFilter } from '../../audit/find.ts';
import { viewLog } from '../../audit/list.ts';
import { allLogs, applicationOf, type TokenUse, tokenUses } from '../../audit/uses.ts';
import { type Instant, parseInstant, second } from '../../base/clock.ts';
import { formatTimestamp } from '../../base/dates.ts';
import { type KeyId, parseUuid } from '../../base/ids.ts';
import { apiKeyPlausible } from '../../keys/api-key.ts';
import type { Operator } from '../../rules/caller.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { Vault } from '../../runtime/open-vault.ts';
import { disclosureOf } from '../../store/log-chain/disclosure.ts';
import type { PlacedEntry } from '../../store/log-chain/entries.ts';
import { type Command, type Flags, jsonFlag, UsageError } from '../terminal/command.ts';
import { operatorOfOnly, soleTenantFlag, withVault } from '../terminal/operator.ts';
import { type Columns, printList } from '../terminal/table.ts';
import { filterFlags, filterOf, lengthOf, spanFlags, spanOf } from './filter.ts';
import { optionalText } from './place.ts';

const limitDefault = 100;

export const logsList: Command = {
  summary:
    'List log entries, newest first. The options are the filters of GET /logs and can be combined. ' +
    'Reading the log is an entry in it.',
  flags: {
    tenant: soleTenantFlag,
    ...filterFlags,
    limit: {
      kind: 'string',
      value: 'N',
      meaning: `the most entries to list, or all (default: ${limitDefault})`,
    },
    json: jsonFlag,
  },
  examples: [
    '--key-id ID --since 24h',
    '--operation delete --result success --limit all --json',
    '--address 203.0.113.7 --shown revealed',
  ],
  run: (flags, terminal) => {
    const limit = limitOf(flags);
    return withLog(terminal, flags, async ({ vault, operator }) => {
      const filter = filterOf(flags, operator.tenant, vault.clock.now());
      const rows: PlacedEntry[] = [];
      for await (const entry of allLogs(vault.store, filter)) {
        if (rows.length >= limit) break;
        rows.push(entry);
      }
      printList(terminal, flags, { rows, json: viewLog, columns: entryColumns });
    });
  },
};

export const logsWho: Command = {
  summary:
    'Show who did something with a token: one line for each key and address, with the number of ' +
    'times, the first and the last time.',
  flags: { tenant: soleTenantFlag, ...spanFlags, json: jsonFlag },
  operand: { name: 'TOKEN', meaning: 'id of the token' },
  examples: ['TOKEN', 'TOKEN --since 30d --json'],
  run: (flags, terminal) => {
    const entity_id = operandOf(flags, 'TOKEN');
    return withLog(terminal, flags, async ({ vault, operator }) => {
      const found = (entity_type: string) =>
        tokenUses(
          allLogs(vault.store, { ...filterIn(flags, vault, operator), entity_type, entity_id }),
        );
      const rows = [...(await found('token')), ...(await found('token_intent'))];
      printList(terminal, flags, { rows, json: viewUse, columns: useColumns });
    });
  },
};

export const logsWhat: Command = {
  summary:
    'Show what was done with a key: one line for each token and address, with the number of times, ' +
    'the first and the last time.',
  flags: { tenant: soleTenantFlag, ...spanFlags, json: jsonFlag },
  operand: { name: 'KEY', meaning: 'id of the key; `key find` gives it' },
  examples: ['KEY', 'KEY --since 7d --json'],
  run: (flags, terminal) => {
    const key_id = keyIdOf(flags, 'KEY');
    return withLog(terminal, flags, async ({ vault, operator }) => {
      const filter = { ...filterIn(flags, vault, operator), key_id };
      const rows = await tokenUses(allLogs(vault.store, filter));
      printList(terminal, flags, { rows, json: viewUse, columns: useColumns });
    });
  },
};

const pollMs = second;
/** Of several streams, one may be a little behind another. */
const latenessMs = 10 * second;

export const logsFollow: Command = {
  summary: 'Print log entries as they are written, until you interrupt it.',
  flags: {
    tenant: soleTenantFlag,
    ...filterFlags,
    for: { kind: 'string', value: 'TIME', meaning: 'how long, such as 30s or 10m' },
    json: jsonFlag,
  },
  examples: ['', '--result denied --json', '--key-id ID --for 10m'],
  run: (flags, terminal) => {
    const length = followedMs(flags);
    return withLog(terminal, flags, async ({ vault, operator }) => {
      const begun = vault.clock.now();
      const filter = filterOf(flags, operator.tenant, begun);
      const since = optionalText(flags, 'since') === undefined ? begun : filter.oldest;
      const seen = new Map<string, Instant>();
      for (const endsAt = Date.now() + length; ; ) {
        for (const entry of await unseen(vault, { ...filter, oldest: since }, seen)) {
          const text = flags['json'] === true ? JSON.stringify(viewLog(entry)) : lineOf(entry);
          terminal.stdout.write(`${text}\n`);
        }
        const left = endsAt - Date.now();
        if (left <= 0) return;
        await pause(Math.min(pollMs, left));
      }
    });
  },
};

/** The oldest first. What was printed is remembered for as long as it is looked for again. */
async function unseen(
  { store, clock }: Vault,
  filter: LogFilter,
  seen: Map<string, Instant>,
): Promise<PlacedEntry[]> {
  const from = seen.size === 0 ? filter.oldest : clock.now() - latenessMs;
  const oldest = parseInstant(Math.max(filter.oldest, from));
  for (const [name, at] of seen) if (at < oldest) seen.delete(name);
  const found: PlacedEntry[] = [];
  for await (const entry of allLogs(store, { ...filter, oldest })) {
    const name = `${entry.stream_id} ${entry.seq}`;
    if (!seen.has(name)) found.push(entry);
    seen.set(name, entry.created_at);
  }
  return found.reverse();
}

interface OpenedLog {
  readonly vault: Vault;
  readonly operator: Operator;
}

/** Reading the log is recorded, before anything is printed. */
export function withLog(
  terminal: Parameters<typeof withVault>[0],
  flags: Flags,
  run: (log: OpenedLog) => Promise<void>,
): Promise<number> {
  return withVault(terminal, async (vault) => {
    const operator = await operatorOfOnly(vault, flags);
    const fact = { entity: 'log', id: operator.tenant.id, operation: 'read' } as const;
    await vault.store.commit({ entries: [entryOf(operator, vault.clock.now(), fact)] });
    await run({ vault, operator });
    return 0;
  });
}

function filterIn(flags: Flags, { clock }: Vault, { tenant }: Operator): LogFilter {
  const nothing = { entity_type: undefined, entity_id: undefined };
  const now = clock.now();
  const index = { keyring: tenant.keyring, now };
  return { tenant: tenant.id, ...nothing, ...spanOf(flags, now), index };
}

function limitOf(flags: Flags): number {
  const text = optionalText(flags, 'limit');
  if (text === undefined) return limitDefault;
  if (text === 'all') return Number.POSITIVE_INFINITY;
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new UsageError('--limit must be a number of entries from 1, or all');
}

function followedMs(flags: Flags): number {
  const text = optionalText(flags, 'for');
  if (text === undefined) return Number.POSITIVE_INFINITY;
  const length = lengthOf(text);
  if (length !== undefined) return length;
  throw new UsageError('--for must be a length of time, such as 30s or 10m');
}

function operandOf(flags: Flags, name: string): string {
  const text = flags[name];
  if (typeof text === 'string' && text !== '') return text;
  throw new UsageError(`the ${name} is required`);
}

/** @throws UsageError for anything but an id; above all for the key itself. */
export function keyIdOf(flags: Flags, name: string): KeyId {
  const text = operandOf(flags, name);
  const id = parseUuid<KeyId>(text);
  if (id !== undefined) return id;
  if (apiKeyPlausible(text)) {
    throw new UsageError(
      `the ${name} is the id of a key, not the key itself, which other users of this machine may now have seen; ` +
        'give the key to `strongroom key find` on standard input',
    );
  }
  throw new UsageError(`the ${name} must be the id of a key; \`strongroom key find\` gives it`);
}

const shownIn = ({ disclosure }: PlacedEntry) =>
  disclosure === null ? '' : (disclosureOf(disclosure)?.shown ?? '');

const entryColumns: Columns<PlacedEntry> = {
  time: ({ created_at }) => formatTimestamp(created_at),
  result: ({ result }) => result,
  operation: ({ operation }) => operation,
  about: ({ entity_type, entity_id }) => `${entity_type} ${entity_id}`,
  shown: shownIn,
  actor: (entry) => applicationOf(entry) ?? entry.actor_type,
  key: ({ source }) => source?.key_id ?? '',
  address: ({ origin }) => origin ?? '',
};

function lineOf(entry: PlacedEntry): string {
  return Object.values(entryColumns)
    .map((textOf) => textOf(entry))
    .filter((text) => text !== '')
    .join('  ');
}

function viewUse({ first, last, ...use }: TokenUse): object {
  return { ...use, first: formatTimestamp(first), last: formatTimestamp(last) };
}

const useColumns: Columns<TokenUse> = {
  key: ({ key_id }) => key_id ?? '',
  application: ({ application_id }) => application_id ?? '',
  address: ({ address }) => address ?? '',
  token: ({ token_id }) => token_id,
  count: ({ count }) => String(count),
  revealed: ({ revealed }) => String(revealed),
  masked: ({ masked }) => String(masked),
  refused: ({ refused }) => String(refused),
  first: ({ first }) => formatTimestamp(first),
  last: ({ last }) => formatTimestamp(last),
};

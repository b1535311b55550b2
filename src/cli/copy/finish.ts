/** The last changes to a copy, before servers start there: what the log says of it, and the end of its sessions. */
import { removedLink, removedSession } from '../../access/people/row.ts';
import { createDigest } from '../../keys/digest.ts';
import { systemEntry } from '../../rules/log-entries.ts';
import { openVault, type Vault } from '../../runtime/open-vault.ts';
import type { LogEntry } from '../../store/log-chain/entries.ts';
import { openRestored } from '../../store/open/open.ts';
import {
  consoleLinks,
  consoleSessions,
  tenantsWithConsoleAccess,
} from '../../store/queries/people.ts';
import { keysOfSessions, someSessions, tenantsWithSessions } from '../../store/queries/sessions.ts';
import type { LogHead } from '../backup/manifest.ts';
import type { KeyedConfig } from './places.ts';

/** Opens the copy as a vault, before any server may. */
export async function inCopy<T>(
  { config, sharedKeys }: KeyedConfig,
  work: (vault: Vault) => Promise<T>,
): Promise<T> {
  const vault = await openVault(config, {
    openStore: openRestored,
    ...(sharedKeys && { sharedKeys }),
  });
  try {
    return await work(vault);
  } finally {
    await vault.close();
  }
}

const sessionsAtOnce = 200;

/**
 * Ends each session of the copy, with an entry, as their tenants could: those of pages, those of people in the console,
 * and the links with which one could begin. @returns how many sessions there were.
 */
export async function endSessions(vault: Vault): Promise<number> {
  return (await endSessionsOfPages(vault)) + (await endConsoleAccess(vault));
}

async function endConsoleAccess({ store, clock }: Vault): Promise<number> {
  let ended = 0;
  const found = await Promise.all(tenantsWithConsoleAccess.map((query) => store.select(query)));
  for (const tenant of new Set(found.flat().map(({ tenant_id }) => tenant_id))) {
    const sessions = await store.select(consoleSessions({ tenant }));
    const links = await store.select(consoleLinks({ tenant }));
    const end = (entity: 'console_session' | 'console_link', id: string) =>
      systemEntry({ tenant, at: clock.now(), entity, id, operation: 'delete' });
    await Promise.all([
      ...sessions.map((row) =>
        store.commit({
          remove: { console_sessions: [removedSession(row)] },
          entries: [end('console_session', row.session_id)],
        }),
      ),
      ...links.map((row) =>
        store.commit({
          remove: { console_links: [removedLink(row)] },
          entries: [end('console_link', row.link_id)],
        }),
      ),
    ]);
    ended += sessions.length;
  }
  return ended;
}

async function endSessionsOfPages({ store, clock }: Vault): Promise<number> {
  let ended = 0;
  for (const { tenant_id: tenant } of await store.select(tenantsWithSessions)) {
    for (;;) {
      const sessions = await store.select(someSessions(tenant, sessionsAtOnce));
      const [first, ...others] = sessions.map(({ session_id: id }) =>
        systemEntry({ tenant, at: clock.now(), entity: 'session', id, operation: 'delete' }),
      );
      if (first === undefined) break;
      const ids = sessions.map(({ session_id }) => session_id);
      const api_keys = await store.select(keysOfSessions(tenant, ids));
      const entries: readonly [LogEntry, ...LogEntry[]] = [first, ...others];
      await store.commit({ remove: { sessions, api_keys }, entries });
      ended += sessions.length;
    }
  }
  return ended;
}

/** One text for all heads, which changes with every entry of any tenant. */
export function digestOfHeads(heads: readonly LogHead[]): string {
  const hash = createDigest();
  hash.update(JSON.stringify(heads));
  return hash.hex();
}

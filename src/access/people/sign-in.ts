/** The sessions that begin when a person has signed in, whatever the way. */
import { type Clock, hour, type Instant, instantAfter, minute } from '../../base/clock.ts';
import { VaultError } from '../../base/errors.ts';
import { type ConsoleSessionId, newUuid, type PersonId } from '../../base/ids.ts';
import type { Random } from '../../base/random.ts';
import { hashConsoleSecret, newConsoleSecret } from '../../keys/console-secret.ts';
import { systemEntry } from '../../rules/log-entries.ts';
import { perform } from '../../rules/operation.ts';
import { proven, provenRow } from '../../rules/proven-row.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Change } from '../../store/change.ts';
import { noSource } from '../../store/log-chain/entries.ts';
import type { SignIn } from '../../store/people-tables.ts';
import { endedConsoleLinks, endedConsoleSessions } from '../../store/queries/people.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import type { LinkMaker } from './maker.ts';
import { removedLink, removedSession } from './row.ts';

/** However much it is used. */
export const consoleSessionLifeMs = 12 * hour;
/** Without a request. */
export const consoleSessionIdleMs = 15 * minute;

/** A person who has just proved who they are. */
interface SigningPerson {
  readonly tenant: Tenant;
  readonly person: { readonly id: PersonId; readonly name: string };
  readonly signIn: SignIn;
  /** Of the link that let the person in, if one did. */
  readonly maker?: LinkMaker | undefined;
  readonly address: string;
  readonly now: Instant;
  /** When the person proved who they are, where that was before. */
  readonly authenticatedAt?: Instant;
}

/** What is committed together with the session. */
export type WithSession = Pick<Change, 'insert' | 'replace' | 'remove' | 'entries'>;

export interface SessionTools {
  readonly store: Store;
  readonly random: Random;
}

export interface BegunSession {
  readonly row: Row<'console_sessions'>;
  /** Only the cookie has it. */
  readonly secret: string;
}

/**
 * Begins a session. Every way to sign in ends here, so none can be fixed beforehand: the secret is always a new one.
 * `undefined` for a conflict: another request was faster with the same proof.
 */
export async function beginSession(
  { store, random }: SessionTools,
  signing: SigningPerson,
  also: WithSession,
): Promise<BegunSession | undefined> {
  const { tenant, person, address, now } = signing;
  const begun = newSession(random, signing);
  const ended = await endedAccess(store, tenant, now);
  const id = begun.row.session_id;
  const fact = { tenant: tenant.id, at: now, entity: 'console_session', id } as const;
  const { conflict } = await store.commit({
    insert: { ...also.insert, console_sessions: [begun.row] },
    ...(also.replace && { replace: also.replace }),
    remove: {
      ...also.remove,
      console_links: [...(also.remove?.console_links ?? []), ...ended.links],
      console_sessions: ended.sessions,
    },
    entries: [
      ...also.entries,
      {
        ...systemEntry({ ...fact, operation: 'create' }),
        origin: address,
        source: { ...noSource, person_id: person.id, person_name: person.name },
      },
      ...ended.entries,
    ],
  });
  return conflict === undefined ? begun : undefined;
}

function newSession(
  random: Random,
  { tenant, person, signIn, maker, address, now, authenticatedAt = now }: SigningPerson,
): BegunSession {
  const secret = newConsoleSecret(random, tenant.id);
  const row = proven(tenant, 'console_sessions', {
    tenant_id: tenant.id,
    secret_hash: hashConsoleSecret(secret),
    version: 1,
    session_id: newUuid<ConsoleSessionId>(random),
    person_id: person.id,
    sign_in: signIn,
    authenticated_at: authenticatedAt,
    address,
    created_at: now,
    idle_at: instantAfter(now, consoleSessionIdleMs),
    expires_at: instantAfter(now, consoleSessionLifeMs),
    created_by: maker?.created_by ?? null,
    created_by_key: maker?.created_by_key ?? null,
    created_by_person: maker?.created_by_person ?? null,
  });
  return { row, secret };
}

/** Sessions and links that have ended by themselves. The next sign-in removes them. */
async function endedAccess(store: Store, tenant: Tenant, now: Instant) {
  const sessions = await store.select(endedConsoleSessions(tenant.id, now));
  const links = await store.select(endedConsoleLinks(tenant.id, now));
  const expire = (entity: 'console_session' | 'console_link', id: string) =>
    systemEntry({ tenant: tenant.id, at: now, entity, id, operation: 'expire' });
  return {
    sessions: sessions.map(removedSession),
    links: links.map(removedLink),
    entries: [
      ...sessions.map(({ session_id }) => expire('console_session', session_id)),
      ...links.map(({ link_id }) => expire('console_link', link_id)),
    ],
  };
}

/** Records that the person of the session has proved again to be present, with the proof. */
export async function sessionProvedAgain(
  { store, clock }: Pick<SessionTools, 'store'> & { readonly clock: Clock },
  { tenant, session, person, signIn = 'passkey', authenticatedAt }: ProvedSession,
  also: WithSession,
): Promise<void> {
  const { secret_hash } = session;
  const key = { tenant_id: tenant.id, secret_hash };
  await perform({ store, actor: undefined }, async () => {
    const now = clock.now();
    const found = await provenRow(store, tenant, { table: 'console_sessions', key });
    if (!found) throw new VaultError('unauthenticated', { public: 'The session has ended.' });
    const { proof: _proof, ...columns } = found;
    const row = proven(tenant, 'console_sessions', {
      ...columns,
      version: found.version + 1,
      sign_in: signIn,
      authenticated_at: authenticatedAt ?? now,
    });
    const fact = { tenant: tenant.id, at: now, entity: 'console_session' } as const;
    const entry = systemEntry({ ...fact, id: found.session_id, operation: 'authenticate' });
    const { person_id, name: person_name } = person;
    const source = { ...noSource, person_id, person_name };
    return {
      change: {
        ...also,
        replace: { ...also.replace, console_sessions: [row] },
        entries: [...also.entries, { ...entry, source }],
      },
      reply: { status: 204 },
    };
  });
}

interface ProvedSession {
  readonly tenant: Tenant;
  readonly session: Pick<Row<'console_sessions'>, 'secret_hash'>;
  readonly person: Pick<Row<'people'>, 'person_id' | 'name'>;
  /** With what it was proved. */
  readonly signIn?: SignIn;
  /** When, where that was before. */
  readonly authenticatedAt?: Instant;
}

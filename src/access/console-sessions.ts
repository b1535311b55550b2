/** The sessions of people in the console: which one a request belongs to, what ends it, and what administrators see. */
import { type Clock, type Instant, instantAfter, minute, second } from '../base/clock.ts';
import { formatTimestamp } from '../base/dates.ts';
import { isIntegrityError, VaultError } from '../base/errors.ts';
import { ExpiringMap } from '../base/expiring-map.ts';
import {
  type ApplicationId,
  type ConsoleSessionId,
  type PersonId,
  parseUuid,
} from '../base/ids.ts';
import { hashConsoleSecret, tenantOfSecret } from '../keys/console-secret.ts';
import type { RefusedConsoleSession } from '../rules/anonymous-entries.ts';
import {
  type Actor,
  authenticated,
  type Caller,
  type Origin,
  type SignedInPerson,
} from '../rules/caller.ts';
import { entryOf } from '../rules/log-entries.ts';
import type { Decide } from '../rules/operation.ts';
import { ifProven, proven, provenRow, provenRows, requireProven } from '../rules/proven-row.ts';
import { listed, rowOf } from '../rules/stored-resource.ts';
import type { Tenant, Tenants } from '../rules/tenant.ts';
import { consoleSessionOfId, consoleSessions } from '../store/queries/people.ts';
import type { Store } from '../store/store.ts';
import type { Row } from '../store/tables.ts';
import { authorityOf, policyFor } from './authority.ts';
import type { KeyFlaw } from './failed-authentication.ts';
import { makerStands } from './people/maker.ts';
import type { PeopleListing, PeopleReading } from './people/resource.ts';
import { removedSession, rolesOf } from './people/row.ts';
import { consoleSessionIdleMs } from './people/sign-in.ts';

/** A person, the session in which the person works, and the tenant of both. */
export interface StandingSession {
  readonly tenant: Tenant;
  readonly session: Row<'console_sessions'>;
  readonly person: Row<'people'>;
}

export interface ConsoleSessionTools {
  readonly store: Store;
  readonly tenants: Pick<Tenants, 'findForRequest'>;
  readonly clock: Clock;
}

/** A session that ended on another server, or whose person was removed there, works for no longer than a second. */
const staleMsMax = second / 2;
const sessionsCached = 1_000;

/** How often a session that is used records that it is: it ends up to so much before its full idle time. */
const renewalMs = 3 * minute;

/** What a cookie leads to. */
export interface LookedUpSession {
  /** Absent once the session, its person or its tenant has ended, or was altered. */
  readonly standing?: StandingSession;
  /** As it is stored, if it is. */
  readonly stored?: RefusedConsoleSession;
  /** A row was altered outside the vault. */
  readonly flaw?: KeyFlaw;
}

export interface ConsoleSessions {
  lookUp(secret: string): Promise<LookedUpSession>;
  /** The session of a cookie. `undefined` once it, its person or its tenant has ended, or was altered. */
  find(secret: string): Promise<StandingSession | undefined>;
  /**
   * The person of the session as an application. Without a reason the person sees values masked at most.
   * `undefined` where the person may not act as that application, or the session has ended.
   */
  callerAs(
    standing: StandingSession,
    application: ApplicationId,
    origin: Origin,
  ): Promise<Caller | undefined>;
}

export function createConsoleSessions({
  store,
  tenants,
  clock,
}: ConsoleSessionTools): ConsoleSessions {
  const recent = new ExpiringMap<string, LookedUpSession>({
    clock,
    ageMsMax: staleMsMax,
    entriesMax: sessionsCached,
    epoch: () => store.epochs.now('access'),
  });

  async function load(secret: string): Promise<LookedUpSession> {
    const id = tenantOfSecret(secret);
    const tenant = id && (await tenants.findForRequest(id));
    if (!tenant) return {};
    const tenant_id = tenant.id;
    const row = await store.get('console_sessions', {
      tenant_id,
      secret_hash: hashConsoleSecret(secret),
    });
    if (!row) return {};
    let stored: RefusedConsoleSession = { tenant_id, console_session_id: row.session_id };
    try {
      const session = requireProven(tenant, 'console_sessions', row);
      const { person_id } = session;
      stored = { ...stored, person_id };
      const key = { tenant_id, person_id };
      const person = await provenRow(store, tenant, { table: 'people', key });
      if (!person || !(await makerStands(store, tenant, session))) return { stored };
      return { stored, standing: { tenant, session, person } };
    } catch (error) {
      if (isIntegrityError(error)) return { stored, flaw: 'altered' };
      throw error;
    }
  }

  async function lookUp(secret: string): Promise<LookedUpSession> {
    const hash = hashConsoleSecret(secret);
    const reading = recent.reading();
    const found = recent.get(hash) ?? (await load(secret));
    const { standing, ...refused } = found;
    if (!standing || hasEnded(standing.session, clock.now())) return refused;
    recent.set(hash, found, reading);
    return found;
  }

  /** No request waits for it. Of several at the same time one is enough. */
  function renew(caller: Caller, session: Row<'console_sessions'>): void {
    const now = clock.now();
    const idleAt = instantAfter(now, consoleSessionIdleMs);
    if (idleAt - session.idle_at < renewalMs) return;
    const { proof: _proof, ...columns } = session;
    const row = proven(caller.tenant, 'console_sessions', {
      ...columns,
      version: session.version + 1,
      idle_at: idleAt,
    });
    const fact = { entity: 'console_session', id: session.session_id, operation: 'use' } as const;
    store
      .commit({ replace: { console_sessions: [row] }, entries: [entryOf(caller, now, fact)] })
      .catch(() => undefined);
  }

  return {
    lookUp,
    find: async (secret) => (await lookUp(secret)).standing,
    callerAs: async (standing, application, sent) => {
      const { tenant, session, person } = standing;
      if (!rolesOf(person).includes(application)) return undefined;
      const origin = { ...sent, person: { id: person.person_id, name: person.name } };
      const credential = {
        application,
        key: undefined,
        session: undefined,
        signedIn: {
          id: person.person_id,
          session: session.session_id,
          secretHash: session.secret_hash,
          isPresent: isPresent(session, clock.now()),
        },
      };
      const authority = await authorityOf(store, tenant, { credential, now: clock.now() });
      if ('ended' in authority) return undefined;
      const { kind, policy } = authority;
      const shown = policyFor({ ...credential, origin }, policy);
      const caller = authenticated({ ...credential, tenant, kind, policy: shown, origin });
      renew(caller, session);
      return caller;
    },
  };
}

/** How long a passkey, or the identity provider, proves that its person is present. */
export const presenceMs = 5 * minute;

/**
 * Whether the person of the session has proved to be present within {@link presenceMs}. Whoever signs in by a link
 * alone is on the machine of the vault, and may have nothing to prove it with.
 */
export function isPresent(
  { sign_in, authenticated_at }: Pick<Row<'console_sessions'>, 'sign_in' | 'authenticated_at'>,
  now: Instant,
): boolean {
  return sign_in === 'link' || now - authenticated_at < presenceMs;
}

/** @throws VaultError `reauthentication_required` */
export function requirePresence(signedIn: Pick<SignedInPerson, 'isPresent'>): void {
  if (signedIn.isPresent) return;
  throw new VaultError('reauthentication_required', {
    public:
      'Confirm that it is you: revealing a value, making a key, and changing who may do what need a ' +
      'proof of the last five minutes.',
  });
}

export function hasEnded(
  { idle_at, expires_at }: Pick<Row<'console_sessions'>, 'idle_at' | 'expires_at'>,
  now: Instant,
): boolean {
  return idle_at <= now || expires_at <= now;
}

/** Newest first, without what a session could be used with. */
export function listConsoleSessions(tools: PeopleListing, caller: Caller, person: string): Decide {
  const { store, clock } = tools;
  const { tenant } = caller;
  return async () => {
    const { person_id } = await rowOf(store, 'people', { tenant, id: person });
    const all = await store.select(consoleSessions({ tenant: tenant.id, person: person_id }));
    const shown = { table: 'console_sessions', found: all, show: viewConsoleSession } as const;
    const { data, entries } = await listed(tools, caller, shown);
    const now = clock.now();
    const live = (data as readonly ReturnType<typeof viewConsoleSession>[]).filter(
      (one) => Date.parse(one.expires_at) > now && Date.parse(one.idle_at) > now,
    );
    return { change: { entries }, reply: { status: 200, body: live } };
  };
}

export function viewConsoleSession(row: Row<'console_sessions'>) {
  return {
    id: row.session_id,
    person_id: row.person_id,
    sign_in: row.sign_in,
    address: row.address,
    created_at: formatTimestamp(row.created_at),
    idle_at: formatTimestamp(row.idle_at),
    expires_at: formatTimestamp(row.expires_at),
  };
}

/** For the operator: sessions that have not ended, newest first. */
export async function consoleSessionsOf(
  { store, clock }: PeopleReading,
  tenant: Tenant,
): Promise<readonly Row<'console_sessions'>[]> {
  const all = await store.select(consoleSessions({ tenant: tenant.id }));
  const now = clock.now();
  const { rows } = provenRows(tenant, 'console_sessions', all);
  return rows.filter((row) => !hasEnded(row, now));
}

export interface SessionOfPerson {
  /** Of whoever it is, unless given. */
  readonly person?: string;
  readonly session: string;
}

/** Ends a session. A row that was altered outside the vault is removed as well. From the decision `not_found`. */
export function endConsoleSession(
  { store, clock }: PeopleReading,
  actor: Actor,
  { person, session }: SessionOfPerson,
): Decide {
  const { tenant } = actor;
  return async () => {
    const id = parseUuid<ConsoleSessionId>(session);
    const [row] = id ? await store.select(consoleSessionOfId(tenant.id, id)) : [];
    const own = row && ifProven(tenant, 'console_sessions', row);
    const isOther = person !== undefined && own?.person_id !== parseUuid<PersonId>(person);
    if (!row || (own && isOther)) {
      throw new VaultError('not_found', { public: 'There is no session with this id.' });
    }
    const fact = { entity: 'console_session', id: row.session_id, operation: 'delete' } as const;
    return {
      change: {
        remove: { console_sessions: [removedSession(row)] },
        entries: [entryOf(actor, clock.now(), fact)],
      },
      reply: { status: 204 },
    };
  };
}

/** People: who may use the console, and as which applications. */
import type { Clock } from '../../base/clock.ts';
import { invalid, VaultError } from '../../base/errors.ts';
import {
  type ApplicationId,
  newUuid,
  type PersonId,
  parseUuid,
  type TenantId,
} from '../../base/ids.ts';
import type { Random } from '../../base/random.ts';
import type { Actor, Caller } from '../../rules/caller.ts';
import { tagOf } from '../../rules/entity-tag.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';
import { ifProven, proven, provenRows } from '../../rules/proven-row.ts';
import { type ListTools, listed, rowOf } from '../../rules/stored-resource.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { RemovedRow } from '../../store/change.ts';
import type { LogEntry } from '../../store/log-chain/entries.ts';
import {
  allPeople,
  consoleLinks,
  consoleSessions,
  peopleCount,
  signInMethods,
} from '../../store/queries/people.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import { removedLink, removedMethod, removedSession, viewPerson } from './row.ts';

const peopleMax = 1000;
export const rolesMax = 20;

export interface PeopleReading {
  readonly store: Store;
  readonly clock: Clock;
}

export interface PeopleWriting extends PeopleReading {
  readonly random: Random;
}

export interface PeopleListing extends PeopleReading, ListTools {}

export interface PersonRequest {
  readonly name: string;
  /** Their ids. */
  readonly applications: readonly string[];
}

export interface NewPerson {
  readonly tenant: Tenant;
  readonly id: PersonId;
  readonly name: string;
  readonly roles: readonly ApplicationId[];
  readonly by: ApplicationId | null;
  readonly at: Row<'people'>['created_at'];
}

export function personRow({ tenant, id, name, roles, by, at }: NewPerson): Row<'people'> {
  return proven(tenant, 'people', {
    tenant_id: tenant.id,
    person_id: id,
    version: 1,
    name,
    application_ids: JSON.stringify(roles),
    created_by: by,
    created_at: at,
    modified_by: null,
    modified_at: null,
  });
}

/** From the decision `validation_failed` for an unknown application, and `unprocessable` beyond {@link peopleMax}. */
export function createPerson(
  { store, clock, random }: PeopleWriting,
  actor: Actor,
  request: PersonRequest,
): Decide {
  const { tenant, application: by } = actor;
  return async () => {
    const at = clock.now();
    const roles = await rolesIn(store, tenant, request.applications);
    await requireRoom(store, tenant.id);
    const id = newUuid<PersonId>(random);
    const row = personRow({ tenant, id, name: request.name, roles, by, at });
    return {
      change: {
        insert: { people: [row] },
        entries: [entryOf(actor, at, { entity: 'person', id, operation: 'create' })],
      },
      reply: {
        status: 201,
        location: `/people/${id}`,
        etag: tagOf('people', row),
        body: viewPerson(row),
      },
    };
  };
}

/** @throws VaultError `unprocessable` */
export async function requireRoom(store: Store, tenant: TenantId): Promise<void> {
  const [counted] = await store.select(peopleCount(tenant));
  if ((counted?.count ?? 0) < peopleMax) return;
  throw new VaultError('unprocessable', {
    public: `A tenant has at most ${peopleMax} people; remove one first.`,
  });
}

/** @throws VaultError `validation_failed` naming the first application that does not exist. */
async function rolesIn(
  store: Store,
  tenant: Tenant,
  applications: readonly string[],
): Promise<readonly ApplicationId[]> {
  const ids = [...new Set(applications.map((id) => id.toLowerCase()))];
  return Promise.all(
    ids.map(async (id, at) => {
      const application_id = parseUuid<ApplicationId>(id);
      const key = application_id && { tenant_id: tenant.id, application_id };
      const row = key && (await store.get('applications', key));
      if (application_id && row && ifProven(tenant, 'applications', row)) return application_id;
      throw invalid(`applications.${at}`, 'must be the id of an application');
    }),
  );
}

/** Replaces name and applications. From the decision `not_found`, or as {@link createPerson}. */
export function updatePerson(
  { store, clock }: PeopleReading,
  actor: Actor,
  { id, update }: { readonly id: string; readonly update: PersonRequest },
): Decide {
  const { tenant, application: modified_by } = actor;
  return async () => {
    const now = clock.now();
    const stored = await rowOf(store, 'people', { tenant, id });
    const { proof: _proof, ...found } = stored;
    const roles = await rolesIn(store, tenant, update.applications);
    const row = proven(tenant, 'people', {
      ...found,
      version: found.version + 1,
      name: update.name,
      application_ids: JSON.stringify(roles),
      modified_by,
      modified_at: now,
    });
    const fact = { entity: 'person', id: row.person_id, operation: 'update' } as const;
    return {
      change: { replace: { people: [row] }, entries: [entryOf(actor, now, fact)] },
      reply: { status: 200, etag: tagOf('people', row), body: viewPerson(row) },
      before: () => tagOf('people', stored),
    };
  };
}

/** For the operator: everybody, newest first. */
export async function peopleOf(store: Store, tenant: Tenant): Promise<readonly Row<'people'>[]> {
  const found = await store.select(allPeople(tenant.id));
  return provenRows(tenant, 'people', found).rows;
}

/** Newest first. A person whose row was altered outside the vault is left out, and an entry records that. */
export function listPeople(tools: PeopleListing, caller: Caller): Decide {
  return async () => {
    const found = await tools.store.select(allPeople(caller.tenant.id));
    const rows = { table: 'people', found, show: viewPerson } as const;
    const { data, entries } = await listed(tools, caller, rows);
    const pagination = { page_size: Math.max(peopleMax, data.length) };
    return { change: { entries }, reply: { status: 200, body: { pagination, data } } };
  };
}

export function readPerson({ store, clock }: PeopleReading, caller: Caller, id: string): Decide {
  const { tenant } = caller;
  return async () => {
    const row = await rowOf(store, 'people', { tenant, id });
    const fact = { entity: 'person', id: row.person_id, operation: 'read' } as const;
    return {
      change: { entries: [entryOf(caller, clock.now(), fact)] },
      reply: { status: 200, etag: tagOf('people', row), body: viewPerson(row) },
      before: () => tagOf('people', row),
    };
  };
}

/**
 * Removes the person with all sessions, links, and sign-in methods: the next request of each session is refused. A row
 * that was altered outside the vault is removed as well. From the decision `not_found`.
 */
export function removePerson({ store, clock }: PeopleReading, actor: Actor, id: string): Decide {
  const { tenant } = actor;
  return async () => {
    const now = clock.now();
    const person_id = parseUuid<PersonId>(id);
    const row = person_id && (await store.get('people', { tenant_id: tenant.id, person_id }));
    if (!row) throw new VaultError('not_found', { public: 'There is no person with this id.' });
    const { sessions, links, methods, entries } = await accessOfPerson(
      store,
      actor,
      row.person_id,
      now,
    );
    const { tenant_id, version } = row;
    const fact = { entity: 'person', id: row.person_id, operation: 'delete' } as const;
    return {
      change: {
        remove: {
          people: [{ tenant_id, person_id: row.person_id, version }],
          console_sessions: sessions,
          console_links: links,
          sign_in_methods: methods,
        },
        entries: [entryOf(actor, now, fact), ...entries],
      },
      reply: { status: 204 },
      before: () => tagOf('people', row),
    };
  };
}

interface AccessOfPerson {
  readonly sessions: readonly RemovedRow<'console_sessions'>[];
  readonly links: readonly RemovedRow<'console_links'>[];
  readonly methods: readonly RemovedRow<'sign_in_methods'>[];
  readonly entries: readonly LogEntry[];
}

async function accessOfPerson(
  store: Store,
  actor: Actor,
  person: PersonId,
  now: Row<'people'>['created_at'],
): Promise<AccessOfPerson> {
  const of = { tenant: actor.tenant.id, person };
  const sessions = await store.select(consoleSessions(of));
  const links = await store.select(consoleLinks(of));
  const methods = await store.select(signInMethods(of));
  const end = (entity: 'console_session' | 'console_link' | 'sign_in_method', id: string) =>
    entryOf(actor, now, { entity, id, operation: 'delete' });
  return {
    sessions: sessions.map(removedSession),
    links: links.map(removedLink),
    methods: methods.map(removedMethod),
    entries: [
      ...sessions.map(({ session_id }) => end('console_session', session_id)),
      ...links.map(({ link_id }) => end('console_link', link_id)),
      ...methods.map(({ method_id }) => end('sign_in_method', method_id)),
    ],
  };
}

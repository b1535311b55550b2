/** Links that let a person in once: with one of them people sign in first, or the operator when nobody else can. */
import { type Clock, type Instant, instantAfter, minute } from '../../base/clock.ts';
import { formatTimestamp } from '../../base/dates.ts';
import { VaultError } from '../../base/errors.ts';
import { type ApplicationId, type ConsoleLinkId, newUuid, type PersonId } from '../../base/ids.ts';
import type { Random } from '../../base/random.ts';
import { hashConsoleSecret, newConsoleSecret, tenantOfSecret } from '../../keys/console-secret.ts';
import type { Actor } from '../../rules/caller.ts';
import { entryOf, systemEntry } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';
import { type Permission, permissionAllowed, permissions } from '../../rules/permissions.ts';
import { ifProven, proven, provenRows, requireProven } from '../../rules/proven-row.ts';
import { rowOf } from '../../rules/stored-resource.ts';
import type { Tenant, Tenants } from '../../rules/tenant.ts';
import type { LogEntry } from '../../store/log-chain/entries.ts';
import { applicationsOf } from '../../store/queries/applications.ts';
import { allPeople, consoleLinks } from '../../store/queries/people.ts';
import type { Store } from '../../store/store.ts';
import type { Unproven } from '../../store/stored-row.ts';
import type { Row } from '../../store/tables.ts';
import { applicationRow } from '../applications/row.ts';
import { type LinkMaker, makerStands } from './maker.ts';
import { peopleOfProvider, requireNoProvider } from './methods.ts';
import { type PeopleWriting, personRow } from './resource.ts';
import { removedLink } from './row.ts';
import { type BegunSession, beginSession, type SessionTools, type WithSession } from './sign-in.ts';

export const linkLifeMs = 10 * minute;

/** The person whom the operator's link lets in, unless the operator names one. */
const administratorName = 'Administrator';
/** The application as which an administrator works with tokens. */
const consoleApplicationName = 'Console';

export interface NewLink {
  readonly row: Row<'console_links'>;
  /** The part of the link behind `#`. */
  readonly code: string;
}

interface LinkedPerson {
  readonly id: PersonId;
  readonly newName: string | null;
}

const byOperator: LinkMaker = {
  created_by: null,
  created_by_key: null,
  created_by_person: null,
};

function makerOf(actor: Actor): LinkMaker {
  if (actor.application === null) return byOperator;
  const { application, key = null, signedIn } = actor;
  return {
    created_by: application,
    created_by_key: key,
    created_by_person: signedIn?.id ?? null,
  };
}

function newLink(
  { clock, random }: Pick<PeopleWriting, 'clock' | 'random'>,
  actor: Actor,
  person: LinkedPerson,
): NewLink {
  const { tenant } = actor;
  const now = clock.now();
  const code = newConsoleSecret(random, tenant.id);
  const row = proven(tenant, 'console_links', {
    tenant_id: tenant.id,
    code_hash: hashConsoleSecret(code),
    version: 1,
    link_id: newUuid<ConsoleLinkId>(random),
    person_id: person.id,
    new_name: person.newName,
    created_at: now,
    expires_at: instantAfter(now, linkLifeMs),
    ...makerOf(actor),
  });
  return { row, code };
}

/** A link for a person. From the decision `not_found`, and `unprocessable` for one whom the provider knows. */
export function createLink(tools: PeopleWriting, actor: Actor, person: string): Decide {
  const { store } = tools;
  const { tenant } = actor;
  return async () => {
    const { person_id: id } = await rowOf(store, 'people', { tenant, id: person });
    await requireNoProvider(store, tenant, id);
    const made = newLink(tools, actor, { id, newName: null });
    return linked(made, actor, await linksOf(store, tenant, id));
  };
}

/**
 * A link for the administrator of the tenant, who is created when the link is used. Only the operator makes one: it
 * gives every right in the tenant.
 */
export function createAdministratorLink(tools: PeopleWriting, operator: Actor): Decide {
  const { store, random } = tools;
  const { tenant } = operator;
  return async () => {
    const people = await store.select(allPeople(tenant.id));
    // At the identity provider, people may choose their name.
    const foreign = await peopleOfProvider(store, tenant);
    const known = provenRows(tenant, 'people', people).rows.find(
      (row) => row.name === administratorName && !foreign.has(row.person_id),
    );
    const person = known
      ? { id: known.person_id, newName: null }
      : { id: newUuid<PersonId>(random), newName: administratorName };
    const made = newLink(tools, operator, person);
    return linked(made, operator, await linksOf(store, tenant, person.id));
  };
}

type StoredLink = Unproven<'console_links'>;

/** A new link takes their place, so that a person has one at most. */
function linksOf(store: Store, tenant: Tenant, person: PersonId): Promise<readonly StoredLink[]> {
  return store.select(consoleLinks({ tenant: tenant.id, person }));
}

function linked({ row, code }: NewLink, actor: Actor, replaced: readonly StoredLink[]) {
  const fact = { entity: 'console_link', id: row.link_id, operation: 'create' } as const;
  return {
    change: {
      insert: { console_links: [row] },
      remove: { console_links: replaced.map(removedLink) },
      entries: [
        entryOf(actor, row.created_at, fact),
        ...replaced.map(({ link_id: id }) =>
          entryOf(actor, row.created_at, { entity: 'console_link', id, operation: 'delete' }),
        ),
      ] as const,
    },
    reply: {
      status: 201 as const,
      body: {
        id: row.link_id,
        person_id: row.person_id,
        code,
        expires_at: formatTimestamp(row.expires_at),
      },
    },
  };
}

export interface LinkUsing extends SessionTools {
  readonly tenants: Pick<Tenants, 'findForRequest'>;
  readonly clock: Clock;
}

/** A link that is valid now, and whom it lets in. */
export interface OpenedLink {
  readonly tenant: Tenant;
  readonly person: { readonly id: PersonId; readonly name: string };
  /** The part of a change that uses the link, once, and creates the person where there is none yet. */
  readonly used: WithSession;
  readonly maker: LinkMaker;
}

/** @throws VaultError `unauthenticated` for a code that is unknown, used or expired, all alike. */
export async function openLink(
  { store, tenants, clock, random }: LinkUsing,
  code: string,
): Promise<OpenedLink> {
  const id = tenantOfSecret(code);
  const tenant = id && (await tenants.findForRequest(id));
  if (!tenant) throw noLink();
  const key = { tenant_id: tenant.id, code_hash: hashConsoleSecret(code) };
  const stored = await store.get('console_links', key);
  if (!stored) throw noLink();
  const link = requireProven(tenant, 'console_links', stored);
  const now = clock.now();
  if (link.expires_at <= now || !(await makerStands(store, tenant, link))) throw noLink();
  const person = await personOfLink(store, tenant, { link, now, random });
  const fact = { tenant: tenant.id, at: now, entity: 'console_link', id: link.link_id } as const;
  return {
    tenant,
    person: { id: link.person_id, name: person.name },
    maker: link,
    used: {
      insert: person.insert,
      remove: { console_links: [removedLink(link)] },
      entries: [systemEntry({ ...fact, operation: 'use' }), ...person.entries],
    },
  };
}

/**
 * Signs in with the code of a link, once: of two requests at the same time one gets a session.
 * @throws VaultError `unauthenticated` as {@link openLink}.
 */
export async function useLink(
  tools: LinkUsing,
  { code, address }: { readonly code: string; readonly address: string },
): Promise<BegunSession> {
  const { used, ...whose } = await openLink(tools, code);
  const now = tools.clock.now();
  const begun = await beginSession(tools, { ...whose, signIn: 'link', address, now }, used);
  if (!begun) throw noLink();
  return begun;
}

interface PersonOfLink {
  readonly name: string;
  readonly insert: {
    readonly people?: readonly Row<'people'>[];
    readonly applications?: readonly Row<'applications'>[];
  };
  readonly entries: readonly LogEntry[];
}

async function personOfLink(
  store: Store,
  tenant: Tenant,
  { link, now, random }: { link: Row<'console_links'>; now: Instant; random: Random },
): Promise<PersonOfLink> {
  const { person_id, new_name: name } = link;
  const stored = await store.get('people', { tenant_id: tenant.id, person_id });
  const known = stored && ifProven(tenant, 'people', stored);
  if (known) return { name: known.name, insert: {}, entries: [] };
  if (name === null) throw noLink();
  const { roles, made } = await administratorRoles(store, tenant, { now, random });
  const fact = { tenant: tenant.id, at: now, operation: 'create' } as const;
  const person = personRow({ tenant, id: person_id, name, roles, by: null, at: now });
  return {
    name,
    insert: { people: [person], ...(made && { applications: [made] }) },
    entries: [
      systemEntry({ ...fact, entity: 'person', id: person_id }),
      ...(made ? [systemEntry({ ...fact, entity: 'application', id: made.application_id })] : []),
    ],
  };
}

/** The oldest management application, and an application for tokens, which is made if there is none. */
async function administratorRoles(
  store: Store,
  tenant: Tenant,
  { now, random }: { readonly now: Instant; readonly random: Random },
): Promise<{ readonly roles: readonly ApplicationId[]; readonly made?: Row<'applications'> }> {
  const found = await store.select(applicationsOf(tenant.id));
  const { rows } = provenRows(tenant, 'applications', found);
  const applications = rows.toSorted((one, other) => one.created_at - other.created_at);
  const management = applications.find(({ type }) => type === 'management');
  const console = applications.find(
    ({ name, type }) => type === 'private' && name === consoleApplicationName,
  );
  const made = console ? undefined : consoleApplication(tenant, { now, random });
  const roles = [management, console ?? made].flatMap((row) => row?.application_id ?? []);
  return { roles, ...(made && { made }) };
}

/** It has no key: only people act as it, who see values masked unless they give a reason. */
function consoleApplication(
  tenant: Tenant,
  { now, random }: { readonly now: Instant; readonly random: Random },
): Row<'applications'> {
  const held = (Object.keys(permissions) as Permission[]).filter((name) =>
    permissionAllowed(name, 'private'),
  );
  return applicationRow({
    tenant,
    id: newUuid<ApplicationId>(random),
    name: consoleApplicationName,
    kind: 'private',
    access: {
      permissions: held.filter((name) => !permissions[name].token),
      rules: [
        {
          description: 'Administrators in the console',
          priority: 1,
          container: '/' as never,
          permissions: held.filter((name) => permissions[name].token),
          transform: 'reveal',
        },
      ],
    },
    key: undefined,
    by: null,
    now,
  });
}

function noLink(): VaultError {
  return new VaultError('unauthenticated', {
    public:
      'The link is not valid. It works once, and for ten minutes. Print another with ' +
      '`strongroom person link`.',
  });
}

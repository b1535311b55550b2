/**
 * People whom the identity provider knows: who they are here, and as which applications they act for as long as it says
 * so. What an administrator gives them besides stays.
 */
import { type Clock, type Instant, second } from '../../base/clock.ts';
import { VaultError } from '../../base/errors.ts';
import { type ApplicationId, newUuid, type PersonId } from '../../base/ids.ts';
import type { JsonObject } from '../../base/json.ts';
import type { RefusedPerson } from '../../rules/anonymous-entries.ts';
import { type Fact, systemEntry } from '../../rules/log-entries.ts';
import { perform } from '../../rules/operation.ts';
import { proven, provenRow, provenRows } from '../../rules/proven-row.ts';
import type { Tenant, Tenants } from '../../rules/tenant.ts';
import { type LogEntry, noSource } from '../../store/log-chain/entries.ts';
import { createFailures } from '../../store/per-tenant/failures.ts';
import { consoleSessions, tenantsOfProvider } from '../../store/queries/people.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import type { ProvenIdentity } from './identity-provider.ts';
import { type MappedTenant, mappedTenants, type RoleRule, rolesNamedIn } from './mapped-roles.ts';
import { identitiesOf, identityHash, methodRow, usedMethod } from './methods.ts';
import { personRow, requireRoom } from './resource.ts';
import { removedSession, rolesOf } from './row.ts';
import type { SessionTools, WithSession } from './sign-in.ts';

export interface IdentityTools extends SessionTools {
  readonly tenants: Pick<Tenants, 'find'>;
  readonly clock: Clock;
}

/** What the vault remembers of a person whom the provider knows. */
interface IdentityDetails {
  readonly issuer: string;
  readonly subject: string;
  /** The applications that the mapping gave when the person last signed in: those go with what they were given for. */
  readonly mapped: readonly ApplicationId[];
}

export interface SigningIdentity {
  readonly identity: ProvenIdentity;
  readonly begunAt: Instant;
  readonly rules: readonly RoleRule[];
  /** The id or the handle of the tenant, where the person named one. Otherwise the mapping decides. */
  readonly asked: string | undefined;
}

/** Whom an identity lets in, and the part of a change that says so. */
export interface IdentityUse {
  readonly tenant: Tenant;
  readonly person: { readonly id: PersonId; readonly name: string };
  readonly used: WithSession;
}

/** Nothing of the person is mapped in the tenant. Where the person was known, that is in the log of the tenant. */
export interface RefusedIdentity {
  readonly refused: readonly RefusedPerson[];
}

/**
 * Decides in which tenant the person works, and as what. In each other tenant that knows the person, the person loses
 * what the provider no longer says, also where no rule names the tenant any more.
 * @throws VaultError `unauthenticated` for a sign-in that began before the last one; `unprocessable` where the tenant
 * has too many people.
 */
export async function personOfIdentity(
  tools: IdentityTools,
  signing: SigningIdentity,
): Promise<IdentityUse | RefusedIdentity> {
  const { identity, rules, asked } = signing;
  const mapped = await mappedTenants(tools, rules, identity.claims);
  const chosen = mapped.find(
    ({ tenant: { id, name }, roles }) =>
      roles.length > 0 && (asked === undefined || asked === id || asked === name),
  );
  const refused: RefusedPerson[] = [];
  const hash = hashOf(identity);
  for (const tenant of await tenantsThatKnow(tools, hash)) {
    if (tenant.id === chosen?.tenant.id) continue;
    const roles = mapped.find((one) => one.tenant.id === tenant.id)?.roles ?? [];
    const person = await keepRoles(tools, { tenant, hash, isKept: (role) => roles.includes(role) });
    if (roles.length > 0 || !person) continue;
    const { person_id, name: person_name } = person;
    refused.push({ tenant_id: tenant.id, person_id, person_name });
  }
  return chosen ? useOf(tools, signing, chosen) : { refused };
}

async function useOf(
  tools: IdentityTools,
  { identity, begunAt }: SigningIdentity,
  mapped: MappedTenant,
): Promise<IdentityUse> {
  const { store, clock, random } = tools;
  const { tenant, roles } = mapped;
  const now = clock.now();
  const found = await knownIdentity(store, tenant, hashOf(identity));
  if (found) {
    const { person, method } = found;
    if (begunAt <= method.used_at) throw replayed();
    const name = nameIn(identity.claims);
    const used = changeOf({ tenant, found, roles, name, begunAt, now });
    return { tenant, person: { id: person.person_id, name }, used };
  }
  await requireRoom(store, tenant.id);
  const id = newUuid<PersonId>(random);
  const person = personRow({ tenant, id, name: nameIn(identity.claims), roles, by: null, at: now });
  const method = methodRow(random, {
    tenant,
    person: id,
    kind: 'oidc',
    identity: [identity.issuer, identity.subject],
    name: accountIn(identity),
    details: detailsFor(identity, roles),
    now,
    begunAt,
  });
  const by = { tenant, person, now };
  return {
    tenant,
    person: { id, name: person.name },
    used: {
      insert: { people: [person], sign_in_methods: [method] },
      entries: [
        entryBy(by, { entity: 'person', id, operation: 'create' }),
        entryBy(by, { entity: 'sign_in_method', id: method.method_id, operation: 'create' }),
      ],
    },
  };
}

interface KnownIdentity {
  readonly method: Row<'sign_in_methods'>;
  readonly person: Row<'people'>;
}

/** @param hash the key of the identity's row. */
async function knownIdentity(
  store: Pick<Store, 'get'>,
  tenant: Tenant,
  hash: string,
): Promise<KnownIdentity | undefined> {
  const tenant_id = tenant.id;
  const key = { tenant_id, identity_hash: hash };
  const method = await provenRow(store, tenant, { table: 'sign_in_methods', key });
  if (!method) return undefined;
  const { person_id } = method;
  const person = await provenRow(store, tenant, { table: 'people', key: { tenant_id, person_id } });
  return person && { method, person };
}

type KnownSubject = Pick<ProvenIdentity, 'issuer' | 'subject'>;

function hashOf({ issuer, subject }: KnownSubject): string {
  return identityHash('oidc', [issuer, subject]);
}

interface NewState {
  readonly tenant: Tenant;
  readonly found: KnownIdentity;
  /** What the mapping gives now. */
  readonly roles: readonly ApplicationId[];
  readonly name: string;
  readonly begunAt: Instant;
  readonly now: Instant;
}

function changeOf({ tenant, found, roles, name, begunAt, now }: NewState): WithSession {
  const { method, person } = found;
  const details = detailsOf(method);
  const byHand = rolesOf(person).filter((role) => !details.mapped.includes(role));
  const next = [...new Set([...roles, ...byHand])];
  const isChanged = JSON.stringify(next) !== person.application_ids || name !== person.name;
  const row = usedMethod(tenant, method, { details: { ...details, mapped: roles }, begunAt });
  const by = { tenant, person: { ...person, name }, now };
  const use = { entity: 'sign_in_method', id: method.method_id, operation: 'use' } as const;
  const update = { entity: 'person', id: person.person_id, operation: 'update' } as const;
  return {
    replace: {
      sign_in_methods: [row],
      ...(isChanged && { people: [withRoles(tenant, person, { name, roles: next, now })] }),
    },
    entries: [entryBy(by, use), ...(isChanged ? [entryBy(by, update)] : [])],
  };
}

type KnownIdentityTools = Pick<IdentityTools, 'store' | 'tenants'>;

/** The tenants that know the identity, whatever the mapping names. Keys of no other tenant are opened. */
async function tenantsThatKnow({ store, tenants }: KnownIdentityTools, hash: string) {
  const rows = await store.select(tenantsOfProvider);
  const found = await Promise.all(
    rows.map(async ({ tenant_id }) => {
      const method = await store.get('sign_in_methods', { tenant_id, identity_hash: hash });
      return method && tenants.find(tenant_id);
    }),
  );
  return found.flatMap((tenant) => tenant ?? []);
}

/**
 * Where no rule of the operator names any more what one gave to people, that ends, in open sessions as well. The next
 * sign-in gives what the rules name then.
 */
export async function endUnnamedRoles(
  tools: Pick<IdentityTools, 'store' | 'tenants' | 'clock'>,
  rules: readonly RoleRule[],
): Promise<number> {
  const { store, tenants } = tools;
  const failures = createFailures(store);
  let count = 0;
  for (const { tenant_id } of await store.select(tenantsOfProvider)) {
    await failures.attempt(async () => {
      const tenant = await tenants.find(tenant_id);
      if (!tenant) return;
      const named = rolesNamedIn(rules, tenant);
      const isKept = (role: ApplicationId) => named.has(role);
      for (const method of await identitiesOf(store, tenant)) {
        if (detailsOf(method).mapped.every(isKept)) continue;
        await keepRoles(tools, { tenant, hash: method.identity_hash, isKept });
        count += 1;
      }
    });
  }
  failures.report();
  return count;
}

interface KeptRoles {
  readonly tenant: Tenant;
  readonly hash: string;
  readonly isKept: (role: ApplicationId) => boolean;
}

/**
 * Takes from a person what the mapping gave and no longer gives. What an administrator gave stays.
 * @returns the person as it was.
 */
async function keepRoles(
  { store, clock }: Pick<IdentityTools, 'store' | 'clock'>,
  { tenant, hash, isKept }: KeptRoles,
): Promise<Row<'people'> | undefined> {
  const known = await knownIdentity(store, tenant, hash);
  if (!known || detailsOf(known.method).mapped.every(isKept)) return known?.person;
  await perform({ store, actor: undefined }, async () => {
    const found = await knownIdentity(store, tenant, hash);
    if (!found) throw replayed();
    const { method, person } = found;
    const now = clock.now();
    const details = detailsOf(method);
    const mapped = details.mapped.filter(isKept);
    const isLost = (role: ApplicationId) => details.mapped.includes(role) && !isKept(role);
    const roles = rolesOf(person).filter((role) => !isLost(role));
    const row = usedMethod(tenant, method, {
      details: { ...details, mapped },
      begunAt: method.used_at,
    });
    const fact = { entity: 'person', id: person.person_id, operation: 'update' } as const;
    return {
      change: {
        replace: {
          sign_in_methods: [row],
          people: [withRoles(tenant, person, { name: person.name, roles, now })],
        },
        entries: [entryBy({ tenant, person, now }, fact)],
      },
      reply: { status: 204 },
    };
  });
  return known.person;
}

interface GivenRoles {
  readonly name: string;
  readonly roles: readonly ApplicationId[];
  readonly now: Instant;
}

function withRoles(tenant: Tenant, person: Row<'people'>, { name, roles, now }: GivenRoles) {
  const { proof: _proof, ...columns } = person;
  return proven(tenant, 'people', {
    ...columns,
    version: person.version + 1,
    name,
    application_ids: JSON.stringify(roles),
    modified_by: null,
    modified_at: now,
  });
}

export interface LoggedOut {
  readonly issuer: string;
  readonly subject: string;
  readonly at: Instant;
}

/** Ends the sessions of the person that had begun by then, in every tenant that knows the person. */
export async function endSessionsOfIdentity(
  tools: IdentityTools,
  notice: LoggedOut,
): Promise<void> {
  const hash = hashOf(notice);
  const failures = createFailures(tools.store);
  for (const tenant of await tenantsThatKnow(tools, hash)) {
    await failures.attempt(async () => {
      const found = await knownIdentity(tools.store, tenant, hash);
      if (found) await endSessions(tools, tenant, { person: found.person, at: notice.at });
    });
  }
  failures.report();
}

interface EndedSessions {
  readonly person: Row<'people'>;
  readonly at: Instant;
}

async function endSessions(
  { store, clock }: IdentityTools,
  tenant: Tenant,
  { person, at }: EndedSessions,
): Promise<void> {
  const of = { tenant: tenant.id, person: person.person_id };
  // A request of a session may renew it meanwhile.
  for (let attempts = 0; attempts < attemptsMax; attempts++) {
    const found = await store.select(consoleSessions(of));
    const { rows: all } = provenRows(tenant, 'console_sessions', found);
    // The notice has whole seconds.
    const ended = all.filter(({ created_at }) => created_at < at + second);
    const by = { tenant, person, now: clock.now() };
    const [first, ...more] = ended.map(({ session_id: id }) =>
      entryBy(by, { entity: 'console_session', id, operation: 'delete' }),
    );
    if (!first) return;
    const remove = { console_sessions: ended.map(removedSession) };
    const { conflict } = await store.commit({ remove, entries: [first, ...more] });
    if (conflict === undefined) return;
  }
  throw new VaultError('conflict', { public: 'The sessions are in use; try again.' });
}

const attemptsMax = 20;

function detailsOf({ details }: Row<'sign_in_methods'>): IdentityDetails {
  return JSON.parse(details);
}

function detailsFor(
  { issuer, subject }: ProvenIdentity,
  mapped: readonly ApplicationId[],
): IdentityDetails {
  return { issuer, subject, mapped };
}

/** The first claim that can be the name of a person in the log. */
function nameIn(claims: JsonObject): string {
  const [name = 'No name'] = ['name', 'preferred_username', 'email', 'sub'].flatMap((claim) =>
    lineIn(claims[claim]),
  );
  return name;
}

/** By which account people tell their sign-in methods apart. */
function accountIn({ claims, subject }: ProvenIdentity): string {
  const [name = subject.slice(0, lineLengthMax)] = ['email', 'preferred_username'].flatMap(
    (claim) => lineIn(claims[claim]),
  );
  return name;
}

const lineLengthMax = 80;

/** Control characters, and those that turn the direction of text, have no place in a log. */
function lineIn(claim: JsonObject[string] | undefined): readonly string[] {
  if (typeof claim !== 'string') return [];
  const line = claim.replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ').trim();
  const short = Array.from(line).slice(0, lineLengthMax).join('').trim();
  return short === '' ? [] : [short];
}

interface ByPerson {
  readonly tenant: Tenant;
  readonly person: Pick<Row<'people'>, 'person_id' | 'name'>;
  readonly now: Instant;
}

function entryBy<E extends 'person' | 'sign_in_method' | 'console_session'>(
  { tenant, person, now }: ByPerson,
  fact: Fact<E>,
): LogEntry {
  const { person_id, name: person_name } = person;
  const entry = systemEntry({ ...fact, tenant: tenant.id, at: now });
  return { ...entry, source: { ...noSource, person_id, person_name } };
}

function replayed(): VaultError {
  return new VaultError('unauthenticated', {
    public: 'It took too long, or was done before. Try again.',
  });
}

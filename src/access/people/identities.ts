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
import { consoleSessions } from '../../store/queries/people.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import type { ProvenIdentity } from './identity-provider.ts';
import { type MappedTenant, mappedTenants, type RoleRule } from './mapped-roles.ts';
import { identityHash, methodRow, usedMethod } from './methods.ts';
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
 * Decides in which tenant the person works, and as what. In each other tenant of the mapping, the person loses what the
 * provider no longer says.
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
  const others = mapped.filter((one) => one !== chosen);
  const known = await Promise.all(others.map((other) => synchronize(tools, identity, other)));
  if (chosen) return useOf(tools, signing, chosen);
  return { refused: known.flatMap((person) => person ?? []) };
}

async function useOf(
  tools: IdentityTools,
  { identity, begunAt }: SigningIdentity,
  mapped: MappedTenant,
): Promise<IdentityUse> {
  const { store, clock, random } = tools;
  const { tenant, roles } = mapped;
  const now = clock.now();
  const found = await knownIdentity(store, tenant, identity);
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

async function knownIdentity(
  store: Store,
  tenant: Tenant,
  { issuer, subject }: Pick<ProvenIdentity, 'issuer' | 'subject'>,
): Promise<KnownIdentity | undefined> {
  const tenant_id = tenant.id;
  const key = { tenant_id, identity_hash: identityHash('oidc', [issuer, subject]) };
  const method = await provenRow(store, tenant, { table: 'sign_in_methods', key });
  if (!method) return undefined;
  const { person_id } = method;
  const person = await provenRow(store, tenant, { table: 'people', key: { tenant_id, person_id } });
  return person && { method, person };
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

/**
 * Where the person does not sign in: what the mapping no longer gives ends, in open sessions as well.
 * @returns the person where it gives nothing at all.
 */
async function synchronize(
  { store, clock }: IdentityTools,
  identity: ProvenIdentity,
  { tenant, roles }: MappedTenant,
): Promise<RefusedPerson | undefined> {
  const known = await knownIdentity(store, tenant, identity);
  if (!known) return undefined;
  const { mapped } = detailsOf(known.method);
  const isLost = (role: ApplicationId) => mapped.includes(role) && !roles.includes(role);
  if (rolesOf(known.person).some(isLost)) {
    const { person_id } = known.person;
    await perform({ store, actor: undefined }, async () => {
      const key = { tenant_id: tenant.id, person_id };
      const person = await provenRow(store, tenant, { table: 'people', key });
      if (!person) throw replayed();
      const now = clock.now();
      const kept = rolesOf(person).filter((role) => !isLost(role));
      const row = withRoles(tenant, person, { name: person.name, roles: kept, now });
      const fact = { entity: 'person', id: person_id, operation: 'update' } as const;
      return {
        change: { replace: { people: [row] }, entries: [entryBy({ tenant, person, now }, fact)] },
        reply: { status: 204 },
      };
    });
  }
  if (roles.length > 0) return undefined;
  const { person_id, name } = known.person;
  return { tenant_id: tenant.id, person_id, person_name: name };
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

/** Ends the sessions of the person in every tenant of the mapping that had begun by then. */
export async function endSessionsOfIdentity(
  tools: IdentityTools,
  rules: readonly RoleRule[],
  notice: LoggedOut,
): Promise<void> {
  for (const { tenant } of await mappedTenants(tools, rules, {})) {
    const found = await knownIdentity(tools.store, tenant, notice);
    if (found) await endSessions(tools, tenant, { person: found.person, at: notice.at });
  }
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

/** With what a person signs in again: passkeys, and who the person is to the identity provider. */
import type { Instant } from '../../base/clock.ts';
import { formatTimestamp } from '../../base/dates.ts';
import { VaultError } from '../../base/errors.ts';
import { newUuid, type PersonId, parseUuid, type SignInMethodId } from '../../base/ids.ts';
import type { Random } from '../../base/random.ts';
import { sha256 } from '../../keys/digest.ts';
import { encodeParts } from '../../keys/parts.ts';
import type { Actor, Caller } from '../../rules/caller.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';
import { proven, provenRows } from '../../rules/proven-row.ts';
import { listed, rowOf } from '../../rules/stored-resource.ts';
import type { Tenant } from '../../rules/tenant.ts';
import { consoleSessions, signInMethods } from '../../store/queries/people.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import type { PeopleListing, PeopleReading } from './resource.ts';
import { removedMethod, removedSession } from './row.ts';

type MethodKind = Row<'sign_in_methods'>['kind'];

/** Of one person. */
const methodsMax = 20;

/** The key of the row. Ids of passkeys and subjects are chosen elsewhere, and may be long. */
export function identityHash(kind: MethodKind, parts: readonly string[]): string {
  return sha256(encodeParts([kind, ...parts])).toString('base64url');
}

export interface NewMethod {
  readonly tenant: Tenant;
  readonly person: PersonId;
  readonly kind: MethodKind;
  readonly identity: readonly string[];
  readonly name: string;
  readonly details: object;
  readonly now: Instant;
  /** When the sign-in began that adds it. */
  readonly begunAt: Instant;
}

export function methodRow(random: Random, method: NewMethod): Row<'sign_in_methods'> {
  const { tenant, person, kind, identity, name, details, now, begunAt } = method;
  return proven(tenant, 'sign_in_methods', {
    tenant_id: tenant.id,
    identity_hash: identityHash(kind, identity),
    version: 1,
    method_id: newUuid<SignInMethodId>(random),
    person_id: person,
    kind,
    name,
    details: JSON.stringify(details),
    created_at: now,
    used_at: begunAt,
  });
}

/** The row after a sign-in that began at that time. */
export function usedMethod(
  tenant: Tenant,
  method: Row<'sign_in_methods'>,
  { details, begunAt }: Pick<NewMethod, 'details' | 'begunAt'>,
): Row<'sign_in_methods'> {
  const { proof: _proof, ...columns } = method;
  return proven(tenant, 'sign_in_methods', {
    ...columns,
    version: method.version + 1,
    details: JSON.stringify(details),
    used_at: begunAt,
  });
}

/** Those of the person, in the order in which they were added. */
export async function methodsOf(
  store: Pick<Store, 'select'>,
  tenant: Tenant,
  person: PersonId,
): Promise<readonly Row<'sign_in_methods'>[]> {
  const found = await store.select(signInMethods({ tenant: tenant.id, person }));
  return provenRows(tenant, 'sign_in_methods', found).rows;
}

/** @throws VaultError `unprocessable` where the person has as many as one may have. */
export function requireRoomForMethod(known: readonly Row<'sign_in_methods'>[]): void {
  if (known.length < methodsMax) return;
  throw new VaultError('unprocessable', {
    public: `A person has at most ${methodsMax} sign-in methods; remove one first.`,
  });
}

/**
 * A person whom the provider knows signs in with it alone: with a passkey, or by a link that adds one, the person would
 * stay when the provider lets them go.
 * @throws VaultError `unprocessable`
 */
export async function requireNoProvider(
  store: Pick<Store, 'select'>,
  tenant: Tenant,
  person: PersonId,
): Promise<void> {
  if (!(await peopleOfProvider(store, tenant)).has(person)) return;
  throw new VaultError('unprocessable', {
    public: 'This person signs in with the identity provider, and with nothing else.',
  });
}

/** What the identity provider says of people of the tenant, one row each. */
export async function identitiesOf(
  store: Pick<Store, 'select'>,
  tenant: Tenant,
): Promise<readonly Row<'sign_in_methods'>[]> {
  const found = await store.select(signInMethods({ tenant: tenant.id }));
  const { rows } = provenRows(tenant, 'sign_in_methods', found);
  return rows.filter(({ kind }) => kind === 'oidc');
}

/** The people of the tenant whom the identity provider knows. */
export async function peopleOfProvider(
  store: Pick<Store, 'select'>,
  tenant: Tenant,
): Promise<ReadonlySet<PersonId>> {
  return new Set((await identitiesOf(store, tenant)).map(({ person_id }) => person_id));
}

export function viewMethod(row: Row<'sign_in_methods'>) {
  return {
    id: row.method_id,
    person_id: row.person_id,
    kind: row.kind,
    name: row.name,
    created_at: formatTimestamp(row.created_at),
    used_at: formatTimestamp(row.used_at),
  };
}

export function listMethods(tools: PeopleListing, caller: Caller, person: string): Decide {
  const { store } = tools;
  const { tenant } = caller;
  return async () => {
    const { person_id } = await rowOf(store, 'people', { tenant, id: person });
    const found = await store.select(signInMethods({ tenant: tenant.id, person: person_id }));
    const shown = { table: 'sign_in_methods', found, show: viewMethod } as const;
    const { data, entries } = await listed(tools, caller, shown);
    return { change: { entries }, reply: { status: 200, body: data } };
  };
}

export interface MethodOfPerson {
  readonly person: string;
  readonly method: string;
  /** The session that goes on: that of the person who removes it. */
  readonly except?: string;
}

/**
 * Removes a method and ends the sessions of the person, which may have begun with it. A row that was altered outside
 * the vault is removed as well. From the decision `not_found`.
 */
export function removeMethod(
  { store, clock }: PeopleReading,
  actor: Actor,
  { person, method, except }: MethodOfPerson,
): Decide {
  const { tenant } = actor;
  return async () => {
    const now = clock.now();
    const [person_id, method_id] = [parseUuid<PersonId>(person), parseUuid<SignInMethodId>(method)];
    const of = person_id && { tenant: tenant.id, person: person_id };
    const known = of ? await store.select(signInMethods(of)) : [];
    const row = known.find((one) => one.method_id === method_id);
    if (!of || !row) {
      throw new VaultError('not_found', { public: 'There is no sign-in method with this id.' });
    }
    const sessions = (await store.select(consoleSessions(of))).filter(
      ({ session_id }) => session_id !== except,
    );
    return {
      change: {
        remove: {
          sign_in_methods: [removedMethod(row)],
          console_sessions: sessions.map(removedSession),
        },
        entries: [
          entryOf(actor, now, { entity: 'sign_in_method', id: row.method_id, operation: 'delete' }),
          ...sessions.map(({ session_id: id }) =>
            entryOf(actor, now, { entity: 'console_session', id, operation: 'delete' }),
          ),
        ],
      },
      reply: { status: 204 },
    };
  };
}

/** Queries about people, their sign-in links and their sessions. */
import type { Instant } from '../../base/clock.ts';
import type { ConsoleSessionId, PersonId, TenantId } from '../../base/ids.ts';
import { readableColumns } from '../safe-integers.ts';
import type { Query } from '../store.ts';
import type { Unproven } from '../stored-row.ts';

/** All people of the tenant, of whom there is a limited number. */
export function allPeople(tenant: TenantId): Query<Unproven<'people'>> {
  return (db) =>
    db
      .selectFrom('people')
      .select(readableColumns('people'))
      .where('tenant_id', '=', tenant)
      .orderBy('created_at', 'desc')
      .orderBy('person_id', 'desc') as unknown as ReturnType<Query<Unproven<'people'>>>;
}

export function peopleCount(tenant: TenantId): Query<{ readonly count: number }> {
  return (db) =>
    db
      .selectFrom('people')
      .where('tenant_id', '=', tenant)
      .select((eb) => eb.fn.countAll<number>().as('count'));
}

interface OfPeople {
  readonly tenant: TenantId;
  /** Of everybody unless given. */
  readonly person?: PersonId;
}

export function consoleSessions({ tenant, person }: OfPeople): Query<Unproven<'console_sessions'>> {
  return (db) => {
    const select = db
      .selectFrom('console_sessions')
      .select(readableColumns('console_sessions'))
      .where('tenant_id', '=', tenant)
      .orderBy('created_at', 'desc');
    const all = person === undefined ? select : select.where('person_id', '=', person);
    return all as unknown as ReturnType<Query<Unproven<'console_sessions'>>>;
  };
}

/** The tenants of which a person has a session of the console or a link to it, also an ended one. */
export const tenantsWithConsoleAccess: readonly Query<{ readonly tenant_id: TenantId }>[] = [
  (db) => db.selectFrom('console_sessions').select('tenant_id').distinct().orderBy('tenant_id'),
  (db) => db.selectFrom('console_links').select('tenant_id').distinct().orderBy('tenant_id'),
];

export function consoleSessionOfId(
  tenant: TenantId,
  id: ConsoleSessionId,
): Query<Unproven<'console_sessions'>> {
  return (db) =>
    db
      .selectFrom('console_sessions')
      .selectAll()
      .where('tenant_id', '=', tenant)
      .where('session_id', '=', id);
}

export function consoleLinks({ tenant, person }: OfPeople): Query<Unproven<'console_links'>> {
  return (db) => {
    const select = db
      .selectFrom('console_links')
      .select(readableColumns('console_links'))
      .where('tenant_id', '=', tenant);
    const all = person === undefined ? select : select.where('person_id', '=', person);
    return all as unknown as ReturnType<Query<Unproven<'console_links'>>>;
  };
}

/** In the order in which they were added. */
export function signInMethods({ tenant, person }: OfPeople): Query<Unproven<'sign_in_methods'>> {
  return (db) => {
    const select = db
      .selectFrom('sign_in_methods')
      .select(readableColumns('sign_in_methods'))
      .where('tenant_id', '=', tenant)
      .orderBy('created_at')
      .orderBy('method_id');
    const all = person === undefined ? select : select.where('person_id', '=', person);
    return all as unknown as ReturnType<Query<Unproven<'sign_in_methods'>>>;
  };
}

/** The tenants in which somebody signs in with the identity provider. */
export const tenantsOfProvider: Query<{ readonly tenant_id: TenantId }> = (db) =>
  db
    .selectFrom('sign_in_methods')
    .select('tenant_id')
    .distinct()
    .where('kind', '=', 'oidc')
    .orderBy('tenant_id');

/** Of a tenant, at most so many: they are removed with the next sign-in. */
const removedMax = 200;

/** Sessions that have ended by themselves. */
export function endedConsoleSessions(
  tenant: TenantId,
  now: Instant,
): Query<Unproven<'console_sessions'>> {
  return (db) =>
    db
      .selectFrom('console_sessions')
      .selectAll()
      .where('tenant_id', '=', tenant)
      .where((eb) => eb.or([eb('idle_at', '<=', now), eb('expires_at', '<=', now)]))
      .limit(removedMax);
}

export function endedConsoleLinks(
  tenant: TenantId,
  now: Instant,
): Query<Unproven<'console_links'>> {
  return (db) =>
    db
      .selectFrom('console_links')
      .selectAll()
      .where('tenant_id', '=', tenant)
      .where('expires_at', '<=', now)
      .limit(removedMax);
}

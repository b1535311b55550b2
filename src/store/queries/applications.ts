/** Queries about applications and their keys. */
import type { Instant } from '../../base/clock.ts';
import type { ApplicationId, KeyId, TenantId } from '../../base/ids.ts';
import { isSafe } from '../safe-integers.ts';
import type { Query } from '../store.ts';
import type { Unproven } from '../stored-row.ts';
import type { Row } from '../tables.ts';
import { named } from './text-patterns.ts';

export interface ApplicationFilter {
  readonly tenant: TenantId;
  /** Not empty where it is given. */
  readonly ids: readonly ApplicationId[] | undefined;
  readonly kinds: readonly Row<'applications'>['type'][] | undefined;
  /** `*` stands for any characters. */
  readonly name?: string | undefined;
}

export function applicationCount({
  tenant,
  ids,
  kinds,
  name,
}: ApplicationFilter): Query<{ readonly count: number }> {
  return (db) => {
    let select = db
      .selectFrom('applications')
      .where('tenant_id', '=', tenant)
      .select((eb) => eb.fn.countAll<number>().as('count'));
    if (ids) select = select.where('application_id', 'in', ids);
    if (kinds) select = select.where('type', 'in', kinds);
    if (name !== undefined) select = select.where(named(name));
    return select;
  };
}

/** Newest first, ties by id. */
type ApplicationPosition = readonly [at: Instant, id: ApplicationId];

export interface ApplicationPage extends ApplicationFilter {
  readonly limit: number;
  /** Continues after this application; otherwise so many are passed over. */
  readonly after: ApplicationPosition | undefined;
  readonly skip: number;
}

export function applicationPage({
  tenant,
  ids,
  kinds,
  name,
  limit,
  after,
  skip,
}: ApplicationPage): Query<Unproven<'applications'>> {
  return (db) => {
    let select = db
      .selectFrom('applications')
      .selectAll()
      .where('tenant_id', '=', tenant)
      .orderBy('created_at', 'desc')
      .orderBy('application_id', 'desc')
      .limit(limit);
    if (ids) select = select.where('application_id', 'in', ids);
    if (kinds) select = select.where('type', 'in', kinds);
    if (name !== undefined) select = select.where(named(name));
    if (after === undefined) return select.offset(skip);
    return select.where(({ eb, refTuple, tuple }) =>
      eb(refTuple('created_at', 'application_id'), '<', tuple(...after)),
    );
  };
}

export function applicationsOf(tenant: TenantId): Query<Unproven<'applications'>> {
  return (db) => db.selectFrom('applications').selectAll().where('tenant_id', '=', tenant);
}

/** Keys of applications, oldest first; of all applications when none are named. No keys of sessions. */
export function applicationKeys(
  tenant: TenantId,
  applications?: readonly ApplicationId[],
): Query<Unproven<'api_keys'>> {
  return (db) => {
    const select = db
      .selectFrom('api_keys')
      .selectAll()
      .where('tenant_id', '=', tenant)
      .where('session_id', 'is', null)
      .orderBy('created_at')
      .orderBy('key_id');
    return applications ? select.where('application_id', 'in', applications) : select;
  };
}

/** Some keys of applications that were neither used nor made since. Reads all keys of the tenant. */
export function unusedKeysBefore(
  tenant: TenantId,
  before: Instant,
  limit: number,
): Query<Unproven<'api_keys'>> {
  return (db) =>
    db
      .selectFrom('api_keys')
      .selectAll()
      .where('tenant_id', '=', tenant)
      .where('session_id', 'is', null)
      .where((eb) => eb(eb.fn.coalesce('last_used_at', 'created_at'), '<', before))
      .limit(limit);
}

/**
 * Keys of an application as far as a removal has to know them, oldest first. Without those of which not even that
 * can be read: the vault cannot have written them.
 */
export function removableKeys(
  tenant: TenantId,
  application: ApplicationId,
): Query<Pick<Row<'api_keys'>, 'key_hash' | 'version' | 'key_id'>> {
  return (db) =>
    db
      .selectFrom('api_keys')
      .select(['key_hash', 'version', 'key_id'])
      .where('tenant_id', '=', tenant)
      .where('application_id', '=', application)
      .where('session_id', 'is', null)
      .where(isSafe('version'))
      .orderBy('created_at')
      .orderBy('key_id');
}

/** A key of any application, or of a session. */
export function keyWithId(tenant: TenantId, id: KeyId): Query<Unproven<'api_keys'>> {
  return (db) =>
    db.selectFrom('api_keys').selectAll().where('tenant_id', '=', tenant).where('key_id', '=', id);
}

/** Those of the keys that the tenant has, as far as a removal has to know them. */
export function keysWithHashes(
  tenant: TenantId,
  hashes: readonly string[],
): Query<Pick<Row<'api_keys'>, 'key_hash' | 'version' | 'key_id'>> {
  return (db) =>
    db
      .selectFrom('api_keys')
      .select(['key_hash', 'version', 'key_id'])
      .where('tenant_id', '=', tenant)
      .where('key_hash', 'in', hashes);
}

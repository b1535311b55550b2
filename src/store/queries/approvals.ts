/** Queries about requests of programs that wait for a person, and about what was decided. */
import { sql } from 'kysely';
import type { Instant } from '../../base/clock.ts';
import type { ApplicationId, ApprovalId, TenantId } from '../../base/ids.ts';
import type { ApprovalStatus } from '../approval-table.ts';
import { isSafe, readableColumns } from '../safe-integers.ts';
import type { Query } from '../store.ts';
import type { Unproven } from '../stored-row.ts';
import type { Row } from '../tables.ts';

interface ApprovalFilter {
  readonly tenant: TenantId;
  /** What has expired by then is left out. */
  readonly now: Instant;
  readonly status: ApprovalStatus | undefined;
}

/** Not as a range of the index by expiry, which is not the tenant's. */
const isAlive = (now: Instant) => sql<boolean>`expires_at - ${now} > 0`;

export function approvalCount({
  tenant,
  now,
  status,
}: ApprovalFilter): Query<{ readonly count: number }> {
  return (db) => {
    const select = db
      .selectFrom('approvals')
      .where('tenant_id', '=', tenant)
      .where(isAlive(now))
      .select((eb) => eb.fn.countAll<number>().as('count'));
    return status === undefined ? select : select.where('status', '=', status);
  };
}

export interface ApprovalPage extends ApprovalFilter {
  readonly limit: number;
  /** Newest first, ties by id. Continues after this one; otherwise so many are skipped. */
  readonly after: readonly [at: Instant, id: ApprovalId] | undefined;
  readonly skip: number;
}

export function approvalPage({
  tenant,
  now,
  status,
  limit,
  after,
  skip,
}: ApprovalPage): Query<Unproven<'approvals'>> {
  return (db) => {
    let select = db
      .selectFrom('approvals')
      .select(readableColumns('approvals'))
      .where('tenant_id', '=', tenant)
      .where(isAlive(now))
      .where(isSafe('created_at'))
      .orderBy('created_at', 'desc')
      .orderBy('approval_id', 'desc')
      .limit(limit);
    if (status !== undefined) select = select.where('status', '=', status);
    const page =
      after === undefined
        ? select.offset(skip)
        : select.where(({ eb, refTuple, tuple }) =>
            eb(refTuple('created_at', 'approval_id'), '<', tuple(...after)),
          );
    return page as unknown as ReturnType<Query<Unproven<'approvals'>>>;
  };
}

/** More approvals for one host would say the same. */
const grantsMax = 10;

export interface GrantSought {
  readonly tenant: TenantId;
  readonly application: ApplicationId;
  readonly policyDigest: string;
  readonly host: string;
  readonly now: Instant;
}

/** What was approved for all requests under the policy to the host. */
export function approvedForHost({
  tenant,
  application,
  policyDigest,
  host,
  now,
}: GrantSought): Query<Unproven<'approvals'>> {
  return (db) =>
    db
      .selectFrom('approvals')
      .selectAll()
      .where('tenant_id', '=', tenant)
      .where('application_id', '=', application)
      .where('scope', '=', 'host')
      .where('policy_digest', '=', policyDigest)
      .where('host', '=', host)
      .where(isAlive(now))
      .limit(grantsMax);
}

/** What waits, and what was approved for a host, under policies that the application is about to lose. */
export function approvalsUnderOthers(
  { tenant, application }: Pick<GrantSought, 'tenant' | 'application'>,
  policyDigests: readonly string[],
): Query<Pick<Row<'approvals'>, 'tenant_id' | 'approval_id' | 'version'>> {
  return (db) => {
    const select = db
      .selectFrom('approvals')
      .select(['tenant_id', 'approval_id', 'version'])
      .where('tenant_id', '=', tenant)
      .where('application_id', '=', application)
      .where((eb) => eb.or([eb('status', '=', 'waiting'), eb('scope', '=', 'host')]))
      .orderBy('approval_id');
    return policyDigests.length === 0
      ? select
      : select.where('policy_digest', 'not in', policyDigests);
  };
}

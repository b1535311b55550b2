/** The tenants that have due work. Jobs read these tenants, and no others. */
import type { Instant } from '../../base/clock.ts';
import { integrityError, type VaultError } from '../../base/errors.ts';
import { parseUuid, type TenantId } from '../../base/ids.ts';
import type { Store } from '../store.ts';
import { tenantNumber, tenantOfNumber } from '../stored-form.ts';
import type { Row } from '../tables.ts';
import { impossible } from '../unavailable.ts';
import type { Work } from '../work-tables.ts';
import {
  type DueColumn,
  type DueOwner,
  type DueOwners,
  impossibleOwners,
  impossibleWork,
  ownersDue,
  type TenantOrNumber,
  tenantsWithNumbers,
  workDue,
} from './due.ts';

/** Numbers that one query turns into ids. */
const numbersPerQuery = 500;

/** Due work that one query reads. */
const workPerPage = 500;

export interface DueTenant {
  readonly id: TenantId;
  /** Its rows among those that were looked at. */
  readonly found: number;
}

export interface DuePage {
  readonly tenants: readonly DueTenant[];
  /** Whether there were rows without a tenant that can be found. The vault did not write them. */
  readonly hasOrphans: boolean;
}

/** An error for rows that nothing can process. */
export function orphans({ table, column }: DueColumn): VaultError {
  return integrityError(
    `rows of ${table} that are due by ${column} belong to no tenant: they were written outside the vault, and stay`,
    { altered: { entity: table, id: '' } },
  );
}

/** Pages of the tenants whose rows are due. Rows without a tenant do not hide the rows after them. */
export async function* duePages(
  store: Pick<Store, 'scan' | 'select'>,
  due: DueOwners,
): AsyncGenerator<DuePage> {
  let after: DueOwner | undefined;
  for (;;) {
    const rows = await store.scan(ownersDue(due, after), 'vault');
    const ids = await idsOf(
      store,
      rows.map(({ owner }) => owner),
    );
    const tenants = rows.flatMap(({ found }, at) => {
      const id = ids[at];
      return id === undefined ? [] : [{ id, found }];
    });
    if (rows.length > 0) yield { tenants, hasOrphans: tenants.length < rows.length };
    if (rows.reduce((sum, { found }) => sum + found, 0) < due.rowsMax) break;
    after = rows.reduce((one, other) => (isBehind(one, other) ? one : other));
  }
  const impossible = await store.scan(impossibleOwners(due), 'vault');
  if (impossible.length > 0) yield { tenants: [], hasOrphans: true };
}

function isBehind(one: DueOwner, other: DueOwner): boolean {
  return one.last === other.last ? one.owner > other.owner : one.last > other.last;
}

/** The ids of tenants as rows name them, in their order; `undefined` where there is no such tenant. */
export async function idsOf(
  store: Pick<Store, 'select'>,
  owners: readonly TenantOrNumber[],
): Promise<readonly (TenantId | undefined)[]> {
  const unknown = owners.filter(
    (owner) => typeof owner === 'number' && tenantOfNumber(owner) === undefined,
  ) as number[];
  for (let at = 0; at < unknown.length; at += numbersPerQuery) {
    const found = await store.select(tenantsWithNumbers(unknown.slice(at, at + numbersPerQuery)));
    for (const { tenant_id } of found) tenantNumber(tenant_id);
  }
  return owners.map((owner) =>
    typeof owner === 'number' ? parseUuid<TenantId>(tenantOfNumber(owner) ?? '') : owner,
  );
}

/**
 * Page by page what is due of any tenant. What is taken away meanwhile moves nothing past the next page.
 *
 * @throws VaultError `integrity`, after the last page, where work was put there that cannot be read.
 */
export async function* dueWork(
  store: Pick<Store, 'select'>,
  { work, until }: { readonly work: Work; readonly until: Instant },
): AsyncGenerator<readonly Row<'due_work'>[]> {
  let after: Row<'due_work'> | undefined;
  for (;;) {
    const page = await store.select(workDue({ work, until, after, limit: workPerPage }));
    if (page.length > 0) yield page;
    after = page.at(-1);
    if (after === undefined || page.length < workPerPage) break;
  }
  if ((await store.select(impossibleWork(work))).length > 0) {
    throw impossible(
      undefined,
      `a row of due_work, of the kind '${work}', has a time that is none`,
    );
  }
}

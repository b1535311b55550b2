/** The tenants that have something due: jobs ask for them, and for no others. */
import type { Instant } from '../../lib/clock.ts';
import { parseUuid, type TenantId } from '../../lib/ids.ts';
import type { Store } from '../store.ts';
import { tenantNumber, tenantOfNumber } from '../stored-form.ts';
import type { Row } from '../tables.ts';
import type { Work } from '../work-tables.ts';
import { type DueOwners, type Owner, ownersDue, tenantsWithNumbers, workDue } from './due.ts';

/** Numbers that one query turns into ids. */
const numbersPerQuery = 500;

/** Due work that one query reads. */
const workPerPage = 500;

export interface DueTenant {
  readonly id: TenantId;
  /** Its rows among those that were looked at. */
  readonly found: number;
}

/** Rows whose tenant is not there any more belong to nobody, and are left out. */
export async function tenantsDue(
  store: Pick<Store, 'scan' | 'select'>,
  due: DueOwners,
): Promise<readonly DueTenant[]> {
  const rows = await store.scan(ownersDue(due));
  const ids = await idsOf(
    store,
    rows.map(({ owner }) => owner),
  );
  return rows.flatMap(({ found }, at) => {
    const id = ids[at];
    return id === undefined ? [] : [{ id, found }];
  });
}

/** The ids of tenants as rows name them, in their order; `undefined` where there is no such tenant. */
export async function idsOf(
  store: Pick<Store, 'select'>,
  owners: readonly Owner[],
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

/** Page by page what is due of any tenant. What is taken away meanwhile moves nothing past the next page. */
export async function* dueWork(
  store: Pick<Store, 'select'>,
  { work, until }: { readonly work: Work; readonly until: Instant },
): AsyncGenerator<readonly Row<'due_work'>[]> {
  let after: Row<'due_work'> | undefined;
  for (;;) {
    const page = await store.select(workDue({ work, until, after, limit: workPerPage }));
    if (page.length > 0) yield page;
    after = page.at(-1);
    if (after === undefined || page.length < workPerPage) return;
  }
}

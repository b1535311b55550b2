/** Approvals that no server waits for, as one leaves behind that crashed. */
import assert from 'node:assert/strict';
import { minute } from '../../src/base/clock.ts';
import { newUuid } from '../../src/base/ids.ts';
import { approvalRow } from '../../src/proxies/approvals/row.ts';
import { systemEntry } from '../../src/rules/log-entries.ts';
import type { Row } from '../../src/store/tables.ts';
import type { TestTenant } from './tenant.ts';

/** Waits for the first application of the tenant. */
export async function leaveApproval({
  id,
  vault,
}: Pick<TestTenant, 'id' | 'vault'>): Promise<Row<'approvals'>> {
  const { tenants, store, random } = vault.running.vault;
  const tenant = await tenants.find(id);
  const [application] = await store.select((db) =>
    db.selectFrom('applications').select('application_id').where('tenant_id', '=', id).limit(1),
  );
  assert.ok(tenant && application);
  const request = { method: 'POST', path: '/v1/pay', tokens: [] };
  const now = vault.clock.now();
  const row = approvalRow(
    tenant,
    { body: { request, key: undefined, approval: 'always', digest: 'digest' }, random },
    {
      tenant_id: id,
      approval_id: newUuid(random),
      application_id: application.application_id,
      version: 1,
      status: 'waiting',
      scope: null,
      policy_digest: 'digest',
      host: 'localhost:443',
      decider: null,
      created_at: now,
      decided_at: null,
      expires_at: (now + 10 * minute) as typeof now,
    },
  );
  const fact = { entity: 'approval', id: row.approval_id, operation: 'create' } as const;
  const entry = systemEntry({ tenant: id, at: now, ...fact });
  const { conflict } = await store.commit({ insert: { approvals: [row] }, entries: [entry] });
  assert.equal(conflict, undefined);
  return row;
}

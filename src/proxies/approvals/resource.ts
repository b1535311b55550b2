/** Approvals: requests of programs that wait for a person, and what people decide about them. */

import { storedPolicies } from '../../access/applications/row.ts';
import { type Clock, day, instantAfter } from '../../base/clock.ts';
import { formatTimestamp } from '../../base/dates.ts';
import { invalid, VaultError } from '../../base/errors.ts';
import type { ApprovalId } from '../../base/ids.ts';
import type { Random } from '../../base/random.ts';
import { type Caller, payerOf } from '../../rules/caller.ts';
import { digestOfPolicy } from '../../rules/egress-policies.ts';
import { detailed, entryOf } from '../../rules/log-entries.ts';
import { offsetPage, type PageQuery } from '../../rules/offset-page.ts';
import { openerFor } from '../../rules/openings.ts';
import type { Decide } from '../../rules/operation.ts';
import type { Permission } from '../../rules/permissions.ts';
import { ifProven } from '../../rules/proven-row.ts';
import { type ListTools, listed, rowOf, type StoredResource } from '../../rules/stored-resource.ts';
import type { ApprovalScope, ApprovalStatus } from '../../store/approval-table.ts';
import { approvalCount, approvalPage } from '../../store/queries/approvals.ts';
import type { Store } from '../../store/store.ts';
import type { RowFromStore } from '../../store/stored-row.ts';
import type { Row } from '../../store/tables.ts';
import { deciderOf, nextApproval, openApproval, storedDecider } from './row.ts';

/** How long an approval for a host holds, and a decision is shown. */
const keptMs = day;

export interface ApprovalReading extends ListTools {
  readonly store: Store;
  readonly clock: Clock;
}

export interface ApprovalDeciding extends ApprovalReading {
  readonly random: Random;
}

export function approvalResource({ store, clock }: ApprovalReading): StoredResource<'approvals'> {
  return {
    store,
    clock,
    table: 'approvals',
    path: '/approvals',
    expiryOf: ({ expires_at }) => expires_at,
    show: (caller, row) => viewApproval(store, caller, row, 'approval:read'),
  };
}

export interface ApprovalQuery extends PageQuery {
  readonly status?: ApprovalStatus;
}

/** Newest first. One that was altered outside the vault is left out, and an entry records that. */
export function listApprovals(
  tools: ApprovalReading,
  caller: Caller,
  query: ApprovalQuery,
): Decide {
  const { store, clock } = tools;
  const { tenant } = caller;
  const newestFirst = {
    route: 'GET /approvals',
    table: 'approvals',
    count: approvalCount,
    page: approvalPage,
  } as const;
  const { show } = approvalResource(tools);
  return async () => {
    const filter = { tenant: tenant.id, now: clock.now(), status: query.status };
    const readPage = offsetPage<'approvals', ApprovalId, typeof filter>(newestFirst, tenant, {
      filter,
      query,
    });
    const { rows, pagination } = await readPage(store, payerOf(caller));
    const { data, entries } = await listed(tools, caller, {
      table: 'approvals',
      found: rows as readonly RowFromStore<'approvals'>[],
      show: (row) => show(caller, row, 'read'),
    });
    return { change: { entries }, reply: { status: 200, body: { pagination, data } } };
  };
}

export interface ApprovalDecision {
  readonly id: string;
  readonly decision: 'approve' | 'deny';
  /** Unless given, the widest that the policy allows. */
  readonly scope?: ApprovalScope | null | undefined;
}

/**
 * Once: of two decisions at the same time, one is a conflict. From the decision `not_found`, also when it has ended;
 * `conflict` where it is decided already, or the application has another policy; `validation_failed` for a host where
 * the policy wants a person for each request.
 */
export function decideApproval(
  { store, clock, random }: ApprovalDeciding,
  caller: Caller,
  { id, decision, scope: given }: ApprovalDecision,
): Decide {
  const { tenant } = caller;
  return async () => {
    const now = clock.now();
    const row = await rowOf(store, 'approvals', { tenant, id });
    if (row.expires_at <= now) throw ended();
    if (row.status !== 'waiting') {
      throw new VaultError('conflict', { public: `The request is ${row.status} already.` });
    }
    const opener = openerFor(caller, 'approval:decide');
    const { approval } = openApproval(opener, row);
    const scope = given ?? (approval === 'first' ? 'host' : 'request');
    if (scope === 'host' && approval !== 'first') {
      throw invalid('scope', 'can be host only under a policy with approval first');
    }
    if (decision === 'approve') await requirePolicy(store, caller, row);
    const next = nextApproval({ ...opener, random }, row, {
      status: decision === 'approve' ? 'approved' : 'denied',
      scope: decision === 'approve' ? scope : null,
      decider: JSON.stringify(deciderOf(caller)),
      decided_at: now,
      expires_at: instantAfter(now, keptMs),
    });
    const event = { approval: { application_id: row.application_id, host: row.host } };
    const fact = { entity: 'approval', id: row.approval_id, operation: decision, event } as const;
    const what = decision === 'approve' && scope === 'host' ? 'for a day, requests' : 'a request';
    const entry = detailed(
      entryOf(caller, now, fact),
      `${what} to ${row.host} of application ${row.application_id}`,
    );
    return {
      change: { replace: { approvals: [next] }, entries: [entry] },
      reply: { status: 200, body: await viewApproval(store, caller, next, 'approval:decide') },
    };
  };
}

/** An application that changes its policies takes what waits under them away, so none changes at the same time. */
async function requirePolicy(
  store: Store,
  { tenant }: Caller,
  { application_id: id, policy_digest }: Row<'approvals'>,
): Promise<void> {
  const policies = storedPolicies(await rowOf(store, 'applications', { tenant, id })) ?? [];
  if (policies.some((policy) => digestOfPolicy(policy) === policy_digest)) return;
  throw new VaultError('conflict', { public: 'The application has another policy by now.' });
}

function ended(): VaultError {
  return new VaultError('not_found', { public: 'There is no approval with this id.' });
}

async function viewApproval(
  store: Pick<Store, 'get'>,
  caller: Caller,
  row: Row<'approvals'>,
  permission: Extract<Permission, `approval:${string}`>,
): Promise<object> {
  const { request, key, approval } = openApproval(openerFor(caller, permission), row);
  const { tenant_id, application_id, decided_at, scope } = row;
  const found = await store.get('applications', { tenant_id, application_id });
  const application = found && ifProven(caller.tenant, 'applications', found);
  const decider = storedDecider(row);
  return {
    id: row.approval_id,
    tenant_id,
    status: row.status,
    application_id,
    ...(application && { application_name: application.name }),
    ...(key !== undefined && { key_id: key }),
    method: request.method,
    host: row.host,
    path: request.path,
    ...(request.content && { content: request.content }),
    tokens: request.tokens,
    approval,
    ...(scope !== null && { scope }),
    ...(decider && { decided_by: decider.application_id }),
    ...(decider?.person && { person: decider.person }),
    ...(decided_at !== null && { decided_at: formatTimestamp(decided_at) }),
    created_at: formatTimestamp(row.created_at),
    expires_at: formatTimestamp(row.expires_at),
  };
}

/** Approvals: what people decide about requests of programs. */
import type { RequestOptions } from './connection.ts';
import type { List } from './list.ts';
import { Resource } from './resource.ts';
import type { Approval, ApprovalRequest, ListApprovalsQuery } from './wire.ts';

/**
 * Requests of programs that wait for a person, as `vault.approvals`. It takes a management key.
 *
 * @example
 * ```ts
 * for await (const { id, method, host, path } of admin.approvals.list({ status: 'waiting' })) {
 *   console.log(id, method, host, path);
 * }
 * ```
 */
export class Approvals extends Resource {
  /**
   * What waits and what was decided within a day, newest first.
   *
   * @example
   * ```ts
   * const waiting = await admin.approvals.list({ status: 'waiting' }).toArray(100);
   * ```
   */
  list(query: ListApprovalsQuery = {}, options?: RequestOptions): List<Approval> {
    return this.pagesOf('listApprovals', { query }, options);
  }

  /**
   * A request that waits, or its decision.
   *
   * @throws NotFoundError for one that has ended.
   * @example
   * ```ts
   * const [waiting] = await admin.approvals.list({ status: 'waiting' }).toArray(1);
   * if (waiting) console.log((await admin.approvals.get(waiting.id)).tokens);
   * ```
   */
  get(id: string, options?: RequestOptions): Promise<Approval> {
    return this.call('getApproval', { params: { id } }, options);
  }

  /**
   * Approves a request, which is then sent. The scope `host` also approves others for a day.
   *
   * @throws ConflictError for one that was decided before, or whose policy has changed.
   * @example
   * ```ts
   * const [waiting] = await admin.approvals.list({ status: 'waiting' }).toArray(1);
   * if (waiting) await admin.approvals.approve(waiting.id, { scope: 'request' });
   * ```
   */
  approve(id: string, request: ApprovalRequest = {}, options?: RequestOptions): Promise<Approval> {
    return this.call('approveRequest', { params: { id }, body: request }, options);
  }

  /**
   * Denies a request, which then fails with 403.
   *
   * @throws ConflictError for one that was decided before.
   * @example
   * ```ts
   * const [waiting] = await admin.approvals.list({ status: 'waiting' }).toArray(1);
   * if (waiting) await admin.approvals.deny(waiting.id);
   * ```
   */
  deny(id: string, options?: RequestOptions): Promise<Approval> {
    return this.call('denyRequest', { params: { id } }, options);
  }
}

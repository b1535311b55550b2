/** The table of requests of programs that wait for a person, and of what people decided within the last day. */
import type { Instant } from '../base/clock.ts';
import type { ApplicationId, ApprovalId, TenantId } from '../base/ids.ts';
import { bytes, integer, optional, proof, type TableSpec, text } from './columns.ts';

export type ApprovalStatus = 'waiting' | 'approved' | 'denied';

/** What a person approves: one request, or for a day all requests under the policy to the host. */
export type ApprovalScope = 'request' | 'host';

export const approvalTables = {
  approvals: {
    key: ['tenant_id', 'approval_id'],
    unique: {},
    owner: 'applications',
    columns: {
      tenant_id: text<TenantId>(),
      approval_id: text<ApprovalId>(),
      application_id: text<ApplicationId>(),
      version: integer(),
      status: text<ApprovalStatus>(),
      /** Null unless it is approved. */
      scope: optional(text<ApprovalScope>()),
      /** base64url of SHA-256 of the policy, which says whether the application still has it. */
      policy_digest: text(),
      /** The host of the request and its port. */
      host: text(),
      /** Sealed JSON: the request as people see it, and its digest. */
      body: bytes(),
      /** JSON: who decided; null while it waits. */
      decider: optional(text()),
      created_at: integer<Instant>(),
      decided_at: optional(integer<Instant>()),
      /** From then on it is gone for every reader. */
      expires_at: integer<Instant>(),
      proof: proof(),
    },
  },
} as const satisfies Record<string, TableSpec>;

/** The table of due work of a tenant that no row of its data indicates. */
import type { Instant } from '../base/clock.ts';
import type { TenantId } from '../base/ids.ts';
import { integer, type TableSpec, text } from './columns.ts';

/** What a job does once it is due. */
export type Work =
  /** The log has grown, so a checkpoint of it may be due. */
  | 'checkpoint'
  /** The oldest entries of the log have reached the tenant's retention. */
  | 'old logs'
  /** Keys of the tenant are to be rotated. */
  | 'key rotation'
  /** Deliveries wait for their next attempt. */
  | 'waiting deliveries'
  /** A webhook was deleted, whose deliveries remain. */
  | 'deliveries'
  /** The tenant was deleted, whose rows remain. */
  | 'tenant';

export const workTables = {
  due_work: {
    key: ['tenant_id', 'work', 'due_at'],
    unique: {},
    columns: {
      tenant_id: text<TenantId>(),
      work: text<Work>(),
      due_at: integer<Instant>(),
    },
  },
} as const satisfies Record<string, TableSpec>;

/** The table of what callers of a tenant did, in figures, for the last hour by minutes and for a month by hours. */
import type { Instant } from '../base/clock.ts';
import type { TenantId } from '../base/ids.ts';
import { integer, type TableSpec, text } from './columns.ts';

export type ActivitySpan = 'minute' | 'hour';

export const activityTables = {
  activity: {
    key: ['tenant_id', 'span', 'slot'],
    unique: {},
    columns: {
      tenant_id: text<TenantId>(),
      span: text<ActivitySpan>(),
      /** Its place in the ring, which a later span takes over. */
      slot: integer(),
      started_at: integer<Instant>(),
      /** JSON; see `access/activity/figures.ts`. Nothing is decided by it. */
      figures: text(),
      /** Grows with each update. */
      revision: integer(),
    },
  },
} as const satisfies Record<string, TableSpec>;

/**
 * The table of how many bytes applications have stored. It is written with the rows: see `sqlite/byte-count.ts` and
 * `postgres/counted-bytes.ts`.
 */
import type { ApplicationId } from '../base/ids.ts';
import { id, integer, type TableSpec, tenant } from './columns.ts';

/**
 * Only recounts write it, and only over the value that they have read: of several that found the same difference, one
 * corrects it. Commits of requests change other slots, and are not in the way.
 */
export const correctionSlot = 256;

export const storageTables = {
  stored_bytes: {
    key: ['tenant_id', 'application_id', 'slot'],
    unique: {},
    columns: {
      tenant_id: tenant(),
      application_id: id<ApplicationId>(),
      /**
       * Of the connection that wrote, below {@link correctionSlot}. The bytes of an application are the sum of its
       * slots.
       */
      slot: integer(),
      bytes: integer(),
    },
  },
} as const satisfies Record<string, TableSpec>;

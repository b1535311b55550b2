/**
 * The table of how many bytes applications have stored. It is written with the rows: see `sqlite/byte-count.ts` and
 * `postgres/counted-bytes.ts`.
 */
import type { ApplicationId } from '../base/ids.ts';
import { id, integer, type TableSpec, tenant } from './columns.ts';

export const storageTables = {
  stored_bytes: {
    key: ['tenant_id', 'application_id', 'slot'],
    unique: {},
    columns: {
      tenant_id: tenant(),
      application_id: id<ApplicationId>(),
      /** Of the connection that wrote; the bytes of an application are the sum of its slots. */
      slot: integer(),
      bytes: integer(),
    },
  },
} as const satisfies Record<string, TableSpec>;

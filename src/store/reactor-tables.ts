/** The tables of reactors and of calls of them. */
import type { Instant } from '../base/clock.ts';
import type { ApplicationId, ReactorId, ReactorRunId, TenantId } from '../base/ids.ts';
import { bytes, integer, optional, proof, type TableSpec, text } from './columns.ts';

export const reactorTables = {
  reactors: {
    key: ['tenant_id', 'reactor_id'],
    unique: {},
    columns: {
      tenant_id: text<TenantId>(),
      reactor_id: text<ReactorId>(),
      version: integer(),
      name: text(),
      /** Sealed JSON of everything else, the code and the configuration among it. */
      body: bytes(),
      created_by: text<ApplicationId>(),
      created_at: integer<Instant>(),
      modified_by: optional(text<ApplicationId>()),
      modified_at: optional(integer<Instant>()),
      proof: proof(),
    },
  },
  /** Calls of reactors: asynchronous ones until a day after their end, and the logs of all of them. */
  reactor_runs: {
    key: ['tenant_id', 'run_id'],
    unique: {},
    owner: 'reactors',
    columns: {
      tenant_id: text<TenantId>(),
      run_id: text<ReactorRunId>(),
      reactor_id: text<ReactorId>(),
      version: integer(),
      /** Sealed JSON: what the code is to run with, later what came of it. Bound to all other columns. */
      body: bytes(),
      /** From then on any server may run it; null once it is done. */
      due_at: optional(integer<Instant>()),
      created_at: integer<Instant>(),
      /** From then on it is gone for every reader. */
      expires_at: integer<Instant>(),
    },
  },
} as const satisfies Record<string, TableSpec>;

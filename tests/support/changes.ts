/** Changes for tests of the store: a token, its entry in the log, and the change that creates it. */

import type { Instant } from '../../src/base/clock.ts';
import { type Container, rootContainer } from '../../src/base/container.ts';
import type { ApplicationId, TenantId, TokenId } from '../../src/base/ids.ts';
import type { Change } from '../../src/store/change.ts';
import type { LogEntry } from '../../src/store/log-chain/entries.ts';
import { noSource } from '../../src/store/log-chain/entries.ts';
import type { Row } from '../../src/store/tables.ts';

export const tenant = '00000000-0000-4000-8000-000000000001' as TenantId;
const application = '00000000-0000-4000-8000-000000000002' as ApplicationId;
export const now = 1_800_000_000_000 as Instant;

export const entry = (id: string, operation = 'create'): LogEntry => ({
  tenant_id: tenant,
  created_at: now,
  actor_id: application,
  actor_type: 'application',
  entity_type: 'token',
  entity_id: id,
  operation,
  message: 'Token created',
  result: 'success',
  disclosure: null,
  source: noSource,
  container: null,
  origin: '127.0.0.1',
  trace_id: null,
});

export const token = (id: string, changes: Partial<Row<'tokens'>> = {}): Row<'tokens'> => ({
  tenant_id: tenant,
  token_id: id as TokenId,
  version: 1,
  type: 'token',
  container: '/general/high/' as Container,
  data: new Uint8Array([0, 1, 2, 255]),
  mask: null,
  metadata: '{"k":"ü ☃"}',
  fingerprint: null,
  fingerprint_expression: null,
  deduplicated: 0,
  search_indexes: null,
  expires_at: null,
  expires_offset: null,
  code_expires_at: null,
  created_by: application,
  created_at: now,
  modified_by: null,
  modified_at: null,
  ...changes,
});

/** A search term under which the token is found. */
export const termOf = (
  { tenant_id, token_id, created_at, container, type, expires_at }: Row<'tokens'>,
  term: string,
): Row<'search_terms'> => ({
  tenant_id,
  token_id,
  term,
  created_at,
  container,
  type,
  expires_at,
});

export const creation = (row: Row<'tokens'>): Change => ({
  insert: { tokens: [row] },
  entries: [entry(row.token_id)],
});

export const removal = (id: string, version = 1) => ({
  tenant_id: tenant,
  token_id: id as TokenId,
  version,
  container: rootContainer,
  data_version: 1,
});

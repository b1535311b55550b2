/** The tables of the log: its blocks, what was signed of them, and what was removed. */
import type { Instant } from '../base/clock.ts';
import type { TenantId } from '../base/ids.ts';
import { bytes, integer, optional, proof, type TableSpec, tenant, text } from './columns.ts';

export const logTables = {
  /** Blocks of log entries: see `store/log-chain/block.ts`. */
  logs: {
    key: ['tenant_id', 'stream_id', 'first_seq'],
    unique: {},
    columns: {
      tenant_id: text<TenantId>(),
      stream_id: text(),
      first_seq: integer(),
      last_seq: integer(),
      first_at: integer<Instant>(),
      last_at: integer<Instant>(),
      hash: text(),
      proof: optional(text()),
      /** Before the body, so that a search reads it without the pages of that. */
      entities: text(),
      body: text(),
    },
  },
  /** Signed statements of how far each stream of the log had grown; see docs/audit.md. */
  checkpoints: {
    key: ['tenant_id', 'seq'],
    unique: {},
    columns: {
      tenant_id: text<TenantId>(),
      /** From 1 without a gap. */
      seq: integer(),
      created_at: integer<Instant>(),
      /** The JSON text that is signed. */
      statement: text(),
      /** base64 of the Ed25519 key's 32 bytes. */
      public_key: text(),
      /** base64 of the Ed25519 signature. */
      signature: text(),
    },
  },
  /** For each stream of the log whose oldest entries were removed, the signed statement of that. */
  log_removals: {
    key: ['tenant_id', 'stream_id'],
    unique: {},
    columns: {
      tenant_id: text<TenantId>(),
      stream_id: text(),
      version: integer(),
      /** Entries 1 to this one are gone. */
      to_seq: integer(),
      statement: text(),
      public_key: text(),
      signature: text(),
    },
  },
  /** How far each stream of the log was pushed to the operator's collector, which confirmed it. */
  log_pushes: {
    key: ['tenant_id', 'stream_id'],
    unique: {},
    columns: {
      tenant_id: text<TenantId>(),
      stream_id: text(),
      /** Of the last entry that was pushed. */
      seq: integer(),
      /** Null of a tenant without keys, and in rows of servers that proved none. */
      proof: optional(proof()),
    },
  },
  /** The search index of the log: see `store/log-chain/postings.ts`. */
  log_index: {
    key: ['tenant_id', 'slot', 'until'],
    unique: {},
    columns: {
      tenant_id: tenant(),
      slot: integer(),
      /** It covers the blocks that end after `since`, and no later than this. */
      until: integer<Instant>(),
      since: integer<Instant>(),
      postings: bytes(),
      proof: proof(),
    },
  },
  /** What alerts have to remember: honey tokens, and the addresses from which keys were used. */
  alert_marks: {
    key: ['tenant_id', 'kind', 'subject', 'place'],
    unique: {},
    columns: {
      tenant_id: text<TenantId>(),
      kind: text<'honey' | 'address'>(),
      /** The id of the token or of the key. */
      subject: text(),
      /** The address, or its /64 network; empty for a token. */
      place: text(),
      created_at: integer<Instant>(),
    },
  },
} as const satisfies Record<string, TableSpec>;

/** The tables of rotations of tenants' keys. */
import type { Instant } from '../base/clock.ts';
import type { TenantId, TokenId } from '../base/ids.ts';
import { id, integer, optional, type TableSpec, tenant, text } from './columns.ts';

/** The purposes whose keys seal rows or make their digests, so that a rotation goes through all rows. */
const sealingRotations = ['data', 'search', 'fingerprint'] as const;
/** The purposes whose keys sign what leaves the vault, so that a rotation is over once all servers have followed. */
export const signingRotations = ['webhooks', 'log'] as const;

export const rotatedPurposes = [...sealingRotations, ...signingRotations] as const;
export type RotatedPurpose = (typeof rotatedPurposes)[number];

/** `period` is a data key for what is written from then on: what is there stays under the keys before. */
export type RotationKind = RotatedPurpose | 'period';

export type RotationPhase =
  /** Another rotation of the tenant is under way. */
  | 'waiting'
  /** All servers learn the new keys, and none writes under them. */
  | 'announced'
  /** Everything is written under the new keys, and what is under earlier ones is sealed again. */
  | 'sealing'
  | 'finished';

export const keyTables = {
  /** The latest rotation of each purpose. */
  key_rotations: {
    key: ['tenant_id', 'purpose'],
    unique: {},
    columns: {
      tenant_id: text<TenantId>(),
      purpose: text<RotationKind>(),
      phase: text<RotationPhase>(),
      phase_at: integer<Instant>(),
      is_paused: integer<0 | 1>(),
      started_at: integer<Instant>(),
      rows_done: integer(),
      /** Rows under earlier keys when the sealing began; null until they were counted. */
      rows_total: optional(integer()),
      /** Rows that were altered outside the vault, which no key opens. */
      unreadable: integer(),
      /** The process that works on it, until this time unless it renews the row. */
      holder: text(),
      until: integer<Instant>(),
      finished_at: optional(integer<Instant>()),
      /** Grows with each update. */
      revision: integer(),
    },
  },
  /**
   * Values that deduplication has given to tokens, by the fingerprint under the key before: while servers write under
   * either key, two of them cannot make a token of one value.
   */
  fingerprint_claims: {
    key: ['tenant_id', 'fingerprint', 'expression'],
    unique: {},
    owner: 'tokens',
    columns: {
      tenant_id: tenant(),
      token_id: id<TokenId>(),
      fingerprint: text(),
      /** Empty where it is that of the token's type. */
      expression: text(),
    },
  },
} as const satisfies Record<string, TableSpec>;

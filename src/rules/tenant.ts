/** The tenant that a request belongs to, with its settings and keys, and how it is found. */

import type { TenantId } from '../base/ids.ts';
import type { Keyring } from '../keys/keyring.ts';
import type { Change } from '../store/change.ts';
import type { Unproven } from '../store/stored-row.ts';
import type { Row } from '../store/tables.ts';
import type { Quarantine } from './quarantine.ts';
import type { Quotas, Settings } from './settings.ts';

export type TenantType = 'test' | 'production';

export interface Tenant {
  readonly id: TenantId;
  /** The operator's handle for it, unique on this vault; the API changes only the display name. */
  readonly name: string;
  readonly type: TenantType;
  readonly settings: Settings;
  readonly quotas: Quotas;
  readonly keyring: Keyring;
  /** For its rows that were altered outside the vault. */
  readonly quarantine: Quarantine;
}

/** The keys of a tenant, and the id to which all that they seal is bound. */
export type TenantKeys = Pick<Tenant, 'id' | 'keyring'>;

/** A row of which a part is sealed under a key of the vault itself. */
export interface GuardedTenantRow {
  readonly row: Row<'tenants'>;
  /** Part of the commit that stores the row: it conflicts if the key was replaced since. */
  readonly guard: {
    readonly remove: readonly Pick<Row<'vault_keys'>, 'name'>[];
    readonly insert: readonly Row<'vault_keys'>[];
  };
}

export type TenantRowChange = Pick<Change, 'insert' | 'replace' | 'remove'>;

export interface Tenants {
  /**
   * The tenant as of at most a second ago; `undefined` if there is none, if another vault serves it, or if its row was
   * altered outside the vault. No request or job uses an altered tenant, or its settings, until the row is repaired.
   */
  find(id: TenantId): Promise<Tenant | undefined>;
  /** The same. @throws VaultError `unavailable` where another vault serves the tenant. */
  findForRequest(id: TenantId): Promise<Tenant | undefined>;
  /** The same from memory: `undefined` also if the tenant would have to be read. */
  known(id: TenantId): Tenant | undefined;
  /** The keyrings that this thread has opened within the last hour, as it last saw them. */
  opened(): Iterable<readonly [TenantId, Keyring]>;
  /** A tenant with keys of its own that is yet to be stored. */
  draft(tenant: {
    readonly name: string;
    readonly type: TenantType;
  }): Promise<GuardedTenantRow & { readonly tenant: Tenant }>;
  /**
   * Of a row that is about to be stored.
   * @throws VaultError `integrity` when the keyring is that of another tenant; `unavailable` while the source of the
   * root key cannot be reached.
   */
  keyringOf(row: Row<'tenants'>): Promise<Keyring>;
  /**
   * The part of a change that stores another keyring of the tenant. It conflicts with every other change of the row.
   */
  rekeyed(row: Row<'tenants'>, keyring: Keyring): Promise<TenantRowChange>;
  /** The row of a deleted tenant, with a mark that only the vault can create. */
  tombstone(row: Omit<Row<'tenants'>, 'proof'>): Promise<GuardedTenantRow>;
  /** False for a row that is not marked as deleted, or was marked outside the vault. */
  isTombstone(row: Unproven<'tenants'>): Promise<boolean>;
  /**
   * The rows of all tenants that are not deleted, altered or not, only to show them to the operator: no request or job
   * reads all of them.
   */
  all(): Promise<readonly Row<'tenants'>[]>;
  /** The row as it is now, altered or not; `undefined` when there is none, or when another vault serves the tenant. */
  row(id: TenantId): Promise<Unproven<'tenants'> | undefined>;
}

/** The tenant that a request belongs to, with its settings and keys, and how it is found. */

import type { TenantId } from '../base/ids.ts';
import type { Keyring } from '../keys/keyring.ts';
import type { Row } from '../store/tables.ts';
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
}

/** The keys of a tenant, and the id to which all that they seal is bound. */
export type TenantKeys = Pick<Tenant, 'id' | 'keyring'>;

export interface Tenants {
  /**
   * The tenant as it was at most a second ago; `undefined` when there is none, or when its row was altered
   * outside the vault: no request or job uses it, or its settings, until the row is repaired.
   */
  find(id: TenantId): Promise<Tenant | undefined>;
  /** The same without reading anything: `undefined` also where that would have to be. */
  known(id: TenantId): Tenant | undefined;
  /** A tenant with keys of its own that is yet to be stored. */
  draft(tenant: { readonly name: string; readonly type: TenantType }): {
    readonly tenant: Tenant;
    readonly row: Row<'tenants'>;
  };
  /** @throws VaultError `integrity` when the keyring is not the one that was made for this tenant. */
  keyringOf(row: Row<'tenants'>): Keyring;
  /** The row of a tenant that is deleted, so marked that nobody but the vault can have written it. */
  tombstone(row: Omit<Row<'tenants'>, 'proof'>): Row<'tenants'>;
  /** False of a row that was marked as deleted outside the vault. */
  isTombstone(row: Row<'tenants'>): boolean;
  /** The rows of all tenants but those that are deleted, for the operator alone: no request or job asks for all. */
  all(): Promise<readonly Row<'tenants'>[]>;
  /** The row as it is now, altered or not; `undefined` when there is none. */
  row(id: TenantId): Promise<Row<'tenants'> | undefined>;
}

/** The tables: one row each says its columns, its key and what must be unique. Both engines read it. */
import type { Instant } from '../base/clock.ts';
import type {
  ApplicationId,
  ClientKeyId,
  KeyId,
  ProxyId,
  SessionId,
  TenantId,
} from '../base/ids.ts';
import { activityTables } from './activity-table.ts';
import { approvalTables } from './approval-table.ts';
import {
  bytes,
  type Column,
  type ColumnKind,
  digest,
  id,
  integer,
  optional,
  proof,
  type TableSpec,
  tenant,
  text,
} from './columns.ts';
import { eventTables } from './event-tables.ts';
import { keyTables } from './key-tables.ts';
import { logTables } from './log-tables.ts';
import { peopleTables } from './people-tables.ts';
import { reactorTables } from './reactor-tables.ts';
import { storageTables } from './storage-tables.ts';
import { tokenTables } from './token-tables.ts';
import { workTables } from './work-tables.ts';

/**
 * A table with a `version` column is replaced and removed only by a writer that names the version it
 * has seen; a table without one only grows and shrinks.
 */
export const tables = {
  tenants: {
    key: ['tenant_id'],
    unique: { name: ['name'] },
    columns: {
      tenant_id: text<TenantId>(),
      version: integer(),
      /** The operator's name for it, unique on this vault. */
      name: text(),
      /** The tenant's own name for itself, where it chose another one; no other tenant can see it. */
      display_name: optional(text()),
      type: text<'test' | 'production'>(),
      /** JSON object of strings. */
      settings: text(),
      /** JSON object of numbers; only what the operator changed. */
      quotas: text(),
      /** The tenant's keys, wrapped by the root key; empty once the tenant is deleted. */
      keyring: bytes(),
      created_at: integer<Instant>(),
      modified_by: optional(text<ApplicationId>()),
      modified_at: optional(integer<Instant>()),
      /** From then on none of its keys is valid; its rows are removed in batches. */
      deleted_at: optional(integer<Instant>()),
      /** Empty once the tenant is deleted. */
      proof: proof(),
      /**
       * Until then another vault serves the tenant, or is about to; null where this one does. A copy of the tenant
       * writes it without a new proof: whoever alters it withholds the tenant from its users, and reveals nothing.
       */
      away_until: optional(integer<Instant>()),
    },
  },
  applications: {
    key: ['tenant_id', 'application_id'],
    unique: {},
    columns: {
      tenant_id: text<TenantId>(),
      application_id: text<ApplicationId>(),
      version: integer(),
      name: text(),
      type: text<'public' | 'private' | 'management'>(),
      /** JSON array of permissions. */
      permissions: text(),
      /** JSON array of access rules. */
      rules: text(),
      /** JSON array of the ids of its keys: a deleted key that is put back is not among them. */
      key_ids: text(),
      /** JSON array of the origins of its pages; null where it lists none. */
      origins: optional(text()),
      created_by: optional(text<ApplicationId>()),
      created_at: integer<Instant>(),
      modified_by: optional(text<ApplicationId>()),
      modified_at: optional(integer<Instant>()),
      proof: proof(),
      /** JSON object of limits; null where there is none. */
      egress_budget: optional(text()),
      /** JSON array of egress policies; null where it has none. */
      egress: optional(text()),
    },
  },
  /**
   * The directory of keys. It alone is found without a tenant, because a key is all that an
   * unauthenticated request has; on a sharded database it is a reference table.
   */
  api_keys: {
    key: ['key_hash'],
    unique: { id: ['tenant_id', 'key_id'] },
    columns: {
      /** base64url of SHA-256 of the key. */
      key_hash: text(),
      version: integer(),
      tenant_id: text<TenantId>(),
      application_id: text<ApplicationId>(),
      key_id: text<KeyId>(),
      /** The session whose key it is; null for a key of the application itself. */
      session_id: optional(text<SessionId>()),
      created_by: optional(text<ApplicationId>()),
      created_at: integer<Instant>(),
      /** Within the hour; null until the first use. */
      last_used_at: optional(integer<Instant>()),
      proof: proof(),
    },
  },
  sessions: {
    key: ['tenant_id', 'session_id'],
    unique: { nonce: ['tenant_id', 'nonce_hash'] },
    columns: {
      tenant_id: text<TenantId>(),
      session_id: text<SessionId>(),
      version: integer(),
      /** The public application that created it. */
      application_id: text<ApplicationId>(),
      /** Of the session's one row in `api_keys`. */
      key_hash: text(),
      /** base64url of SHA-256 of the nonce. */
      nonce_hash: text(),
      /** JSON array of permissions; empty until the session is authorized. */
      permissions: text(),
      /** JSON array of access rules. */
      rules: text(),
      /** The private application that authorized it. */
      authorized_by: optional(text<ApplicationId>()),
      authorized_at: optional(integer<Instant>()),
      created_at: integer<Instant>(),
      expires_at: integer<Instant>(),
      proof: proof(),
      /** With which of the application's keys it was created; null in rows of schema version 1. */
      created_by_key: optional(text<KeyId>()),
      /** With which key of `authorized_by`; null until then, and in rows of schema version 1. */
      authorized_by_key: optional(text<KeyId>()),
    },
  },
  proxies: {
    key: ['tenant_id', 'proxy_id'],
    unique: {},
    columns: {
      tenant_id: text<TenantId>(),
      proxy_id: text<ProxyId>(),
      version: integer(),
      name: text(),
      /** base64url of SHA-256 of the proxy's key. */
      key_hash: text(),
      /** The host by which it is called, in lower case; null where it is called by its key alone. */
      host: optional(text()),
      /** Sealed JSON of everything else, the key and the configuration among it. */
      body: bytes(),
      created_by: text<ApplicationId>(),
      created_at: integer<Instant>(),
      modified_by: optional(text<ApplicationId>()),
      modified_at: optional(integer<Instant>()),
      proof: proof(),
    },
  },
  /**
   * The directory of proxies: a call has no tenant before its proxy is found. On a sharded database it is a reference
   * table. It is only an index; the row of the proxy proves that the address is its own.
   */
  proxy_addresses: {
    key: ['address'],
    unique: {},
    owner: 'proxies',
    columns: {
      /** `key:` and the hash of a key, or `host:` and a host. */
      address: text(),
      tenant_id: text<TenantId>(),
      proxy_id: text<ProxyId>(),
    },
  },
  /**
   * The names that the operator gave to tenants for their proxies. No two tenants have one name, so it is found
   * without a tenant; on a sharded database it is a reference table.
   */
  tenant_hosts: {
    key: ['host'],
    unique: {},
    columns: {
      /** In lower case. */
      host: text(),
      version: integer(),
      tenant_id: text<TenantId>(),
      created_at: integer<Instant>(),
      proof: proof(),
    },
  },
  ...reactorTables,
  /** The keys with which browsers and apps encrypt for the vault. */
  client_keys: {
    key: ['tenant_id', 'client_key_id'],
    unique: {},
    columns: {
      tenant_id: text<TenantId>(),
      client_key_id: text<ClientKeyId>(),
      version: integer(),
      /** Sealed PEM. */
      private_key: bytes(),
      created_by: text<ApplicationId>(),
      created_at: integer<Instant>(),
      expires_at: integer<Instant>(),
      proof: proof(),
    },
  },
  /** What was encrypted with a `jti` and was opened: a second use conflicts with the row of the first. */
  client_key_uses: {
    key: ['tenant_id', 'client_key_id', 'jti_digest'],
    unique: {},
    owner: 'client_keys',
    columns: {
      tenant_id: text<TenantId>(),
      client_key_id: text<ClientKeyId>(),
      /** base64url of SHA-256 of the `jti`. */
      jti_digest: text(),
      used_at: integer<Instant>(),
      /** base64url of SHA-256 of the key and the `jti`: how the log names the row. Null before schema version 8. */
      use_id: optional(text()),
      /** Null before schema version 8. */
      proof: optional(proof()),
    },
  },
  ...tokenTables,
  /** Responses stored under an idempotency key. */
  replies: {
    key: ['tenant_id', 'application_id', 'route', 'key_digest'],
    unique: {},
    columns: {
      tenant_id: tenant(),
      /** Of the application, or of the session that sent the request. */
      application_id: id<ApplicationId | SessionId>(),
      /** Method and path, for example `POST /tokens`. */
      route: text(),
      key_digest: digest(),
      version: integer(),
      /** Sealed JSON of status, location and body. */
      /** The application whose stored bytes it counts as; null in rows of servers that did not count. */
      charged_to: optional(id<ApplicationId>()),
      reply: bytes(),
      /** From then on some of the response is gone, as it is from the token, or all of it. */
      next_expiry_at: integer<Instant>(),
      created_at: integer<Instant>(),
    },
  },
  ...eventTables,
  ...keyTables,
  ...peopleTables,
  ...approvalTables,
  ...logTables,
  ...workTables,
  ...activityTables,
  // Last, because to remove rows of the others writes to it.
  ...storageTables,
} as const satisfies Record<string, TableSpec>;

export type Table = keyof typeof tables;

type ColumnsOf<T extends Table> = (typeof tables)[T]['columns'];

/** A row as stored: absent values are SQL's null. */
export type Row<T extends Table> = {
  readonly [C in keyof ColumnsOf<T>]: ColumnsOf<T>[C] extends Column<infer V> ? V : never;
};

/** The primary key of a row. */
export type Key<T extends Table> = {
  readonly [C in (typeof tables)[T]['key'][number] & keyof ColumnsOf<T>]: Row<T>[C];
};

/** The tables whose rows carry the version a writer must have seen. */
export type VersionedTable = {
  [T in Table]: 'version' extends keyof ColumnsOf<T> ? T : never;
}[Table];

/** All tables as Kysely sees them. */
export type DatabaseSchema = { [T in Table]: Row<T> };

export type SqlValue = string | number | Uint8Array | null;

/** A row of whatever table, by column. */
export type AnyRow = Readonly<Record<string, SqlValue>>;

/** A table without its types, for the engines, which treat all tables alike. */
export interface TableShape {
  readonly name: Table;
  readonly columns: readonly string[];
  readonly kinds: readonly ColumnKind[];
  readonly key: readonly string[];
  readonly unique: Readonly<Record<string, readonly string[]>>;
  readonly versioned: boolean;
  readonly owner: Table | undefined;
  /** The tables whose rows belong to rows of this one. */
  readonly owned: readonly Table[];
}

const names = Object.keys(tables) as readonly Table[];

const specOf = (name: Table): TableSpec => tables[name];

function shapeOf(name: Table): TableShape {
  const spec = specOf(name);
  return {
    name,
    columns: Object.keys(spec.columns),
    kinds: Object.values(spec.columns).map((column) => column.kind),
    key: spec.key,
    unique: spec.unique,
    versioned: 'version' in spec.columns,
    owner: spec.owner as Table | undefined,
    owned: names.filter((other) => specOf(other).owner === name),
  };
}

export const shapes = Object.fromEntries(names.map((name) => [name, shapeOf(name)])) as Readonly<
  Record<Table, TableShape>
>;

export function kindOf(table: Table, column: string): ColumnKind {
  const { columns, kinds } = shapes[table];
  return kinds[columns.indexOf(column)] ?? 'text';
}

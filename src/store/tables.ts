/** The tables: one row each says its columns, its key and what must be unique. Both engines read it. */
import type { Instant } from '../lib/clock.ts';
import type { Container } from '../lib/container.ts';
import type { ApplicationId, KeyId, TenantId, TokenId } from '../lib/ids.ts';

export type ColumnKind = 'text' | 'integer' | 'bytes';

interface Column<T> {
  readonly kind: ColumnKind;
  /** Never set; carries the type of the column's values. */
  readonly value?: T;
}

const text = <T extends string = string>(): Column<T> => ({ kind: 'text' });
const integer = <T extends number = number>(): Column<T> => ({ kind: 'integer' });
const bytes = (): Column<Uint8Array> => ({ kind: 'bytes' });
const optional = <T>(column: Column<T>): Column<T | null> => column;

interface TableSpec {
  /** The primary key, which begins with the tenant so that tenants can be spread over machines. */
  readonly key: readonly string[];
  /** Further constraints by name; the index is called `<table>_<name>`. */
  readonly unique: Readonly<Record<string, readonly string[]>>;
  readonly columns: Readonly<Record<string, Column<unknown>>>;
}

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
      name: text(),
      type: text<'test' | 'production'>(),
      /** JSON object of strings. */
      settings: text(),
      /** JSON object of numbers; only what the operator changed. */
      quotas: text(),
      /** The tenant's keys, wrapped by the root key. */
      keyring: bytes(),
      created_at: integer<Instant>(),
      modified_at: optional(integer<Instant>()),
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
      created_by: optional(text<ApplicationId>()),
      created_at: integer<Instant>(),
      modified_by: optional(text<ApplicationId>()),
      modified_at: optional(integer<Instant>()),
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
      tenant_id: text<TenantId>(),
      application_id: text<ApplicationId>(),
      key_id: text<KeyId>(),
      created_by: optional(text<ApplicationId>()),
      created_at: integer<Instant>(),
    },
  },
  tokens: {
    key: ['tenant_id', 'token_id'],
    unique: { fingerprint: ['tenant_id', 'fingerprint'] },
    columns: {
      tenant_id: text<TenantId>(),
      token_id: text<TokenId>(),
      version: integer(),
      type: text(),
      container: text<Container>(),
      /** Sealed JSON text. */
      data: bytes(),
      /** JSON, where `null` means no mask; SQL's null means the mask of the token's type. */
      mask: optional(text()),
      /** JSON object of strings. */
      metadata: optional(text()),
      fingerprint: optional(text()),
      /** Null where the expression is that of the token's type. */
      fingerprint_expression: optional(text()),
      /** 1 when the token answers for its fingerprint: no second such token may exist. */
      deduplicated: integer<0 | 1>(),
      /** JSON array of expressions; their values are in `search_terms`. */
      search_indexes: optional(text()),
      expires_at: optional(integer<Instant>()),
      /** Minutes east of UTC in which the caller wrote the expiry. */
      expires_offset: optional(integer()),
      created_by: text<ApplicationId>(),
      created_at: integer<Instant>(),
      modified_by: optional(text<ApplicationId>()),
      modified_at: optional(integer<Instant>()),
    },
  },
  search_terms: {
    key: ['tenant_id', 'token_id', 'term'],
    unique: {},
    columns: {
      tenant_id: text<TenantId>(),
      token_id: text<TokenId>(),
      /** base64url of the keyed digest of the value. */
      term: text(),
    },
  },
  /** Answers kept under an idempotency key. */
  replies: {
    key: ['tenant_id', 'application_id', 'route', 'idempotency_key'],
    unique: {},
    columns: {
      tenant_id: text<TenantId>(),
      application_id: text<ApplicationId>(),
      /** Method and path pattern, for example `POST /tokens`. */
      route: text(),
      idempotency_key: text(),
      version: integer(),
      /** Sealed JSON of status, headers and body. */
      reply: bytes(),
      created_at: integer<Instant>(),
    },
  },
  logs: {
    key: ['tenant_id', 'stream_id', 'seq'],
    unique: {},
    columns: {
      tenant_id: text<TenantId>(),
      stream_id: text(),
      seq: integer(),
      hash: text(),
      created_at: integer<Instant>(),
      actor_id: optional(text()),
      actor_type: text(),
      entity_type: text(),
      entity_id: text(),
      operation: text(),
      message: text(),
      result: text(),
      origin: optional(text()),
      trace_id: optional(text()),
    },
  },
} as const satisfies Record<string, TableSpec>;

export type Table = keyof typeof tables;

type Columns<T extends Table> = (typeof tables)[T]['columns'];

/** A row as stored: absent values are SQL's null. */
export type Row<T extends Table> = {
  readonly [C in keyof Columns<T>]: Columns<T>[C] extends Column<infer V> ? V : never;
};

/** The primary key of a row. */
export type Key<T extends Table> = {
  readonly [C in (typeof tables)[T]['key'][number] & keyof Columns<T>]: Row<T>[C];
};

/** The tables whose rows carry the version a writer must have seen. */
export type VersionedTable = {
  [T in Table]: 'version' extends keyof Columns<T> ? T : never;
}[Table];

/** All tables as Kysely sees them. */
export type Schema = { [T in Table]: Row<T> };

export type SqlValue = string | number | Uint8Array | null;

/** A table without its types, for the engines, which treat all tables alike. */
export interface TableShape {
  readonly name: Table;
  readonly columns: readonly string[];
  readonly kinds: readonly ColumnKind[];
  readonly key: readonly string[];
  readonly unique: Readonly<Record<string, readonly string[]>>;
  readonly versioned: boolean;
}

function shapeOf(name: Table): TableShape {
  const spec: TableSpec = tables[name];
  return {
    name,
    columns: Object.keys(spec.columns),
    kinds: Object.values(spec.columns).map((column) => column.kind),
    key: spec.key,
    unique: spec.unique,
    versioned: 'version' in spec.columns,
  };
}

export const shapes = Object.fromEntries(
  (Object.keys(tables) as Table[]).map((name) => [name, shapeOf(name)]),
) as Readonly<Record<Table, TableShape>>;

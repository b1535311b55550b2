/** Applications: who may call, with which permissions and rules, by which keys. */
import { hashApiKey, newApiKey } from '../crypto/api-key.ts';
import type { Clock } from '../lib/clock.ts';
import { formatTimestamp } from '../lib/dates.ts';
import { invalid } from '../lib/errors.ts';
import { createFindings } from '../lib/findings.ts';
import { type ApplicationId, type KeyId, newUuid } from '../lib/ids.ts';
import type { Random } from '../lib/random.ts';
import type { Row } from '../store/tables.ts';
import { type Access, parsePermissions, parseRules, type WireRule } from './access.ts';
import { entryOf } from './audit.ts';
import type { Caller } from './caller.ts';
import type { Decide } from './perform.ts';
import type { ApplicationKind } from './permissions.ts';
import type { Tenant } from './tenants.ts';

export interface ApplicationRequest {
  readonly name: string;
  readonly type: ApplicationKind;
  readonly permissions?: readonly string[] | null;
  readonly rules?: readonly WireRule[] | null;
  readonly create_key?: boolean | null;
}

export interface ApplicationWriting {
  readonly clock: Clock;
  readonly random: Random;
}

/** @throws VaultError `validation_failed` naming every attribute that is wrong. */
export function createApplication(
  { clock, random }: ApplicationWriting,
  caller: Caller,
  request: ApplicationRequest,
): Decide {
  const access = readAccess(request);
  return async () => {
    const now = clock.now();
    const row = applicationRow({
      tenant: caller.tenant,
      id: newUuid<ApplicationId>(random),
      name: request.name,
      kind: request.type,
      access,
      by: caller.application,
      now,
    });
    const key =
      request.create_key === false ? undefined : newKey({ row, tenant: caller.tenant, random });
    return {
      change: {
        insert: { applications: [row], ...(key && { api_keys: [key.row] }) },
        entries: [
          entryOf(caller, now, {
            entity: 'application',
            id: row.application_id,
            operation: 'create',
          }),
        ],
      },
      reply: {
        status: 201,
        location: `/applications/${row.application_id}`,
        body: viewApplication(row, key && [key]),
      },
    };
  };
}

/** The stored permissions and rules; they were checked when they were stored. */
export function accessOf(row: Row<'applications'>): Access {
  return {
    permissions: JSON.parse(row.permissions) as Access['permissions'],
    rules: JSON.parse(row.rules) as Access['rules'],
  };
}

function readAccess({ type, permissions, rules }: ApplicationRequest): Access {
  const findings = createFindings();
  const held = findings.attempt(() => parsePermissions(permissions ?? [], type)) ?? [];
  const ruled = findings.attempt(() => parseRules(rules ?? [], { kind: type })) ?? [];
  findings.settle();
  if (held.length + ruled.length === 0) {
    throw invalid('permissions', 'must not be empty unless rules are given');
  }
  return { permissions: held, rules: ruled };
}

export interface NewApplication {
  readonly tenant: Tenant;
  readonly id: ApplicationId;
  readonly name: string;
  readonly kind: ApplicationKind;
  readonly access: Access;
  /** The application that asked for it; none for the first of a tenant. */
  readonly by: ApplicationId | null;
  readonly now: Row<'applications'>['created_at'];
}

export function applicationRow(application: NewApplication): Row<'applications'> {
  return {
    tenant_id: application.tenant.id,
    application_id: application.id,
    version: 1,
    name: application.name,
    type: application.kind,
    permissions: JSON.stringify(application.access.permissions),
    rules: JSON.stringify(application.access.rules),
    created_by: application.by,
    created_at: application.now,
    modified_by: null,
    modified_at: null,
  };
}

/** A key with its text, which exists nowhere else and is shown once. */
export interface NewKey {
  readonly row: Row<'api_keys'>;
  readonly text: string;
}

const keyKinds = { public: 'pub', private: 'pvt', management: 'mgt' } as const;

/** A fresh key for the application, or the one an operator supplied. */
export function newKey(options: {
  readonly row: Row<'applications'>;
  readonly tenant: Tenant;
  readonly random: Random;
  readonly supplied?: string | undefined;
}): NewKey {
  const { row, tenant, random, supplied } = options;
  const env = tenant.type === 'production' ? 'prod' : 'test';
  const text = supplied ?? newApiKey({ env, kind: keyKinds[row.type], random });
  return {
    text,
    row: {
      key_hash: hashApiKey(text).toString('base64url'),
      tenant_id: row.tenant_id,
      application_id: row.application_id,
      key_id: newUuid<KeyId>(random),
      created_by: row.created_by,
      created_at: row.created_at,
    },
  };
}

/** The application as callers see it; `key` and `keys[].key` only in the answer to its creation. */
export function viewApplication(row: Row<'applications'>, keys: readonly NewKey[] = []): object {
  const { permissions, rules } = accessOf(row);
  return {
    id: row.application_id,
    tenant_id: row.tenant_id,
    name: row.name,
    type: row.type,
    ...(keys[0] && { key: keys[0].text }),
    keys: keys.map((key) => ({
      id: key.row.key_id,
      key: key.text,
      version: '1',
      ...(key.row.created_by !== null && { created_by: key.row.created_by }),
      created_at: formatTimestamp(key.row.created_at),
    })),
    permissions,
    rules,
    ...(row.created_by !== null && { created_by: row.created_by }),
    created_at: formatTimestamp(row.created_at),
    ...(row.modified_at !== null && {
      modified_by: row.modified_by,
      modified_at: formatTimestamp(row.modified_at),
    }),
  };
}

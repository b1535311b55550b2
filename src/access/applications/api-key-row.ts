/** A key as it is stored, by its hash, and as it is shown: with the key itself only when it is new. */

import type { Instant } from '../../base/clock.ts';
import { formatTimestamp } from '../../base/dates.ts';
import { type ApplicationId, type KeyId, newUuid, type SessionId } from '../../base/ids.ts';
import type { Random } from '../../base/random.ts';
import { type ApiKeyEnv, type ApiKeyKind, hashApiKey, newApiKey } from '../../keys/api-key.ts';
import type { HolderKind } from '../../rules/permissions.ts';
import { proven } from '../../rules/proven-row.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Row } from '../../store/tables.ts';

/** A key with its secret string, which is stored nowhere and shown once. */
export interface NewKey {
  readonly row: Row<'api_keys'>;
  readonly text: string;
}

const kindInKey: Readonly<Record<HolderKind, ApiKeyKind>> = {
  public: 'pub',
  private: 'pvt',
  management: 'mgt',
  session: 'ses',
};

export interface KeyRequest {
  readonly tenant: Tenant;
  readonly application: ApplicationId;
  readonly kind: HolderKind;
  readonly session?: SessionId;
  /** The application that requested it; null if the operator did. */
  readonly by: ApplicationId | null;
  readonly now: Instant;
  readonly random: Random;
  /** The key itself, if an operator chose it. */
  readonly supplied?: string | undefined;
}

export function apiKeyEnvOf(type: Tenant['type']): ApiKeyEnv {
  return type === 'production' ? 'prod' : 'test';
}

export function newKey(request: KeyRequest): NewKey {
  const { tenant, random } = request;
  const env = apiKeyEnvOf(tenant.type);
  const text = request.supplied ?? newApiKey({ env, kind: kindInKey[request.kind], random });
  return {
    text,
    row: proven(tenant, 'api_keys', {
      key_hash: hashApiKey(text),
      version: 1,
      tenant_id: tenant.id,
      application_id: request.application,
      key_id: newUuid<KeyId>(random),
      session_id: request.session ?? null,
      created_by: request.by,
      created_at: request.now,
      last_used_at: null,
    }),
  };
}

/** The form of our keys; clients store it with the id. It is not the row's version. */
const keyForm = '1';

/** The key as callers see it. Only the response to its creation holds the key itself. */
export function viewKey(row: Row<'api_keys'>, text?: string): object {
  return {
    id: row.key_id,
    tenant_id: row.tenant_id,
    application_id: row.application_id,
    ...(text !== undefined && { key: text }),
    version: keyForm,
    ...(row.created_by !== null && { created_by: row.created_by }),
    created_at: formatTimestamp(row.created_at),
    ...(row.last_used_at !== null && { last_used_at: formatTimestamp(row.last_used_at) }),
  };
}

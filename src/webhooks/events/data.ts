/** The data of events about rows that a change wrote: the entity and the actor, never the data of a token. */

import { accessOf } from '../../access/applications/row.ts';
import { formatTimestamp } from '../../base/dates.ts';
import type { JsonObject } from '../../base/json.ts';
import { openProxy } from '../../proxies/row.ts';
import { openerOf } from '../../rules/openings.ts';
import { viewHistory } from '../../rules/stored-resource.ts';
import type { TenantKeys } from '../../rules/tenant.ts';
import type { ExplainedName } from '../../store/row-states.ts';
import type { Row } from '../../store/tables.ts';
import { viewInEvent } from '../../tokens/contents/view.ts';

const views: {
  readonly [T in ExplainedName]?: (row: Row<T>, keys: TenantKeys) => JsonObject;
} = {
  tenants: (row) => ({ name: row.display_name ?? row.name, ...viewHistory(row) }),
  applications: (row) => ({
    type: row.type,
    name: row.name,
    ...(accessOf(row) as unknown as JsonObject),
    ...viewHistory(row),
  }),
  api_keys: (row) => ({
    application_id: row.application_id,
    version: row.version,
    ...viewHistory(row),
  }),
  sessions: (row) => ({
    created_by: row.application_id,
    created_at: formatTimestamp(row.created_at),
    expires_at: formatTimestamp(row.expires_at),
    issued_to_application: { id: row.application_id },
    ...(row.authorized_by !== null && (accessOf(row) as unknown as JsonObject)),
  }),
  proxies: (row, keys) => {
    const { definition } = openProxy(openerOf('describe proxies', keys), row).reveal();
    return {
      name: row.name,
      ...(definition.application_id !== null && { application_id: definition.application_id }),
      ...(row.host !== null && { proxy_host: row.host }),
      timeout: definition.timeout,
      destination_url: definition.destination_url,
      require_authentication: definition.require_auth,
      ...viewHistory(row),
    };
  },
  reactors: (row) => ({ name: row.name, ...viewHistory(row) }),
  tokens: viewInEvent,
  token_intents: (row) => ({
    type: row.type,
    ...(row.fingerprint !== '' && { fingerprint: row.fingerprint }),
    ...viewHistory(row),
    expires_at: formatTimestamp(row.expires_at),
  }),
};

/** The row as events show it, without its id; `undefined` for tables without events. */
export function viewOfRow<T extends ExplainedName>(
  table: T,
  row: Row<T>,
  keys: TenantKeys,
): JsonObject {
  const view = views[table] as ((row: Row<T>, keys: TenantKeys) => JsonObject) | undefined;
  return view?.(row, keys) ?? {};
}

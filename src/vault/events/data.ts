/** What events say of the rows that a change wrote: who and what, never the data of a token. */
import { formatTimestamp } from '../../lib/dates.ts';
import type { JsonObject } from '../../lib/json.ts';
import { openerOf } from '../../rules/openings.ts';
import type { TenantKeys } from '../../rules/tenant.ts';
import type { ExplainedName } from '../../store/row-states.ts';
import type { Row } from '../../store/tables.ts';
import { viewInEvent } from '../../values/view.ts';
import { accessOf } from '../applications/row.ts';
import { openProxy } from '../proxies/row.ts';

const views: {
  readonly [T in ExplainedName]?: (row: Row<T>, keys: TenantKeys) => JsonObject;
} = {
  tenants: (row) => ({ name: row.display_name ?? row.name, ...historyOf(row) }),
  applications: (row) => ({
    type: row.type,
    name: row.name,
    ...(accessOf(row) as unknown as JsonObject),
    ...historyOf(row),
  }),
  api_keys: (row) => ({
    application_id: row.application_id,
    version: row.version,
    ...historyOf(row),
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
      ...historyOf(row),
    };
  },
  reactors: (row) => ({ name: row.name, ...historyOf(row) }),
  tokens: viewInEvent,
  token_intents: (row) => ({
    type: row.type,
    ...(row.fingerprint !== '' && { fingerprint: row.fingerprint }),
    ...historyOf(row),
    expires_at: formatTimestamp(row.expires_at),
  }),
};

/** The row as events show it, without its id; nothing of tables of which there are no events. */
export function viewOfRow<T extends ExplainedName>(
  table: T,
  row: Row<T>,
  keys: TenantKeys,
): JsonObject {
  const view = views[table] as ((row: Row<T>, keys: TenantKeys) => JsonObject) | undefined;
  return view?.(row, keys) ?? {};
}

interface HistoryColumns {
  readonly created_by?: string | null;
  readonly created_at: Row<'tokens'>['created_at'];
  readonly modified_by?: string | null;
  readonly modified_at?: Row<'tokens'>['modified_at'];
}

function historyOf(row: HistoryColumns): JsonObject {
  const { created_by = null, created_at, modified_by = null, modified_at = null } = row;
  return {
    ...(created_by !== null && { created_by }),
    created_at: formatTimestamp(created_at),
    ...(modified_by !== null && { modified_by }),
    ...(modified_at !== null && { modified_at: formatTimestamp(modified_at) }),
  };
}

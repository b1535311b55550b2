/** Applications as a stored resource. Each is created with its first key unless the request says otherwise. */
import type { Clock } from '../../base/clock.ts';
import { type ApplicationId, newUuid, parseUuid } from '../../base/ids.ts';
import type { Random } from '../../base/random.ts';
import { type Caller, payerOf } from '../../rules/caller.ts';
import {
  digestOfPolicy,
  type EgressPolicy,
  parsePolicies,
  type WirePolicy,
} from '../../rules/egress-policies.ts';
import { tagOf } from '../../rules/entity-tag.ts';
import { alteredEntries, entryOf } from '../../rules/log-entries.ts';
import { offsetPage, type PageQuery } from '../../rules/offset-page.ts';
import type { Decide } from '../../rules/operation.ts';
import { parseOrigins } from '../../rules/page-origins.ts';
import type { ApplicationKind } from '../../rules/permissions.ts';
import type { Access } from '../../rules/policy.ts';
import { proven, provenRows } from '../../rules/proven-row.ts';
import { requireRoom } from '../../rules/settings.ts';
import {
  type CreatedResource,
  type ListTools,
  listed,
  nextVersion,
  rowOf,
  viewHistory,
} from '../../rules/stored-resource.ts';
import {
  applicationCount,
  applicationPage,
  removableKeys,
} from '../../store/queries/applications.ts';
import { approvalsUnderOthers } from '../../store/queries/approvals.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import { type NewKey, newKey, viewKey } from './api-key-row.ts';
import { keysOf, namedKeys, provenKeysOf } from './queries.ts';
import {
  type AccessRequest,
  accessOf,
  applicationRow,
  budgetColumn,
  type EgressBudget,
  originsOf,
  policiesColumn,
  readAccess,
  storedAccess,
  storedBudget,
  storedOrigins,
  storedPolicies,
} from './row.ts';

export interface ApplicationReading {
  readonly store: Store;
  readonly clock: Clock;
}

export interface ApplicationWriting extends ApplicationReading {
  readonly random: Random;
}

export interface ApplicationRequest extends AccessRequest {
  readonly name: string;
  readonly type: ApplicationKind;
  readonly create_key?: boolean | null;
  readonly origins?: readonly string[] | null;
  readonly egress_budget?: EgressBudget | null;
  readonly egress?: readonly WirePolicy[] | null;
}

interface ApplicationSettings {
  readonly name: string;
  readonly kind: ApplicationKind;
  readonly access: Access;
  readonly hasKey: boolean;
  readonly origins: readonly string[] | undefined;
  readonly budget: EgressBudget | null | undefined;
  readonly egress: readonly EgressPolicy[] | undefined;
}

type ApplicationResource = CreatedResource<'applications', ApplicationRequest, ApplicationSettings>;

export function applicationResource({
  store,
  clock,
  random,
}: ApplicationWriting): ApplicationResource {
  return {
    store,
    clock,
    table: 'applications',
    path: '/applications',
    parse: ({ name, type: kind, create_key, origins, egress_budget: budget, ...given }) => {
      const { egress, ...access } = given;
      return {
        name,
        kind,
        access: readAccess(access, kind),
        hasKey: create_key !== false,
        origins: parseOrigins(origins, kind),
        budget,
        egress: parsePolicies(egress, kind),
      };
    },

    requireRoom: async ({ id: tenant, quotas }) =>
      requireRoom(
        quotas,
        'application_limit',
        await store.select(applicationCount({ tenant, ids: undefined, kinds: undefined })),
      ),

    async show({ tenant }, row) {
      return viewApplication(row, await provenKeysOf(store, tenant, [row]));
    },

    async make(caller, { created_at: now }, { hasKey, ...settings }) {
      const { tenant, application: by } = caller;
      const id = newUuid<ApplicationId>(random);
      const key = hasKey
        ? newKey({ tenant, application: id, kind: settings.kind, by, now, random })
        : undefined;
      const key_id = key?.row.key_id;
      const row = applicationRow({ ...settings, tenant, id, key: key_id, by, now });
      const reply = { body: viewNewApplication(row, key) };
      if (key === undefined) return { row, reply };
      const fact = { entity: 'application_key', id: key.row.key_id, operation: 'create' } as const;
      return {
        row,
        reply,
        insert: { api_keys: [key.row] },
        entries: [entryOf(caller, now, fact)],
      };
    },

    /**
     * A key created in the meantime raises the application's version, so no key is left behind. A row that an attacker
     * made unreadable is left: without its application it gives no access, and it must not keep the other keys in use.
     */
    async removal(caller, { tenant_id, application_id }, now) {
      const keys = await store.select(removableKeys(tenant_id, application_id));
      const event = { application_key: { application_id } };
      const fact = { entity: 'application_key', operation: 'delete', event } as const;
      return {
        remove: { api_keys: keys },
        entries: keys.map(({ key_id: id }) => entryOf(caller, now, { ...fact, id })),
      };
    },
  };
}

export interface ApplicationUpdate extends AccessRequest {
  readonly name: string;
  readonly origins?: readonly string[] | null;
  readonly egress_budget?: EgressBudget | null;
  readonly egress?: readonly WirePolicy[] | null;
}

/**
 * Replaces name, permissions and rules. Clients that know neither origins, egress policies, nor the egress budget must
 * not take them away by leaving them out, so only null does. From the decision `not_found`, `validation_failed` by the
 * kind of the application, or `integrity` when it or one of its keys was altered.
 */
export function updateApplication(
  { store, clock }: ApplicationReading,
  caller: Caller,
  { id, update }: { readonly id: string; readonly update: ApplicationUpdate },
): Decide {
  const { origins, egress_budget, egress } = update;
  return async () => {
    const now = clock.now();
    const found = await rowOf(store, 'applications', { tenant: caller.tenant, id });
    const keys = await provenKeysOf(store, caller.tenant, [found]);
    const row = proven(caller.tenant, 'applications', {
      ...nextVersion(caller, found, now),
      name: update.name,
      ...storedAccess(readAccess(update, found.type)),
      ...(origins !== undefined && storedOrigins(parseOrigins(origins, found.type))),
      ...(egress_budget !== undefined && budgetColumn(egress_budget)),
      ...(egress !== undefined && policiesColumn(parsePolicies(egress, found.type))),
    });
    const digests = (storedPolicies(row) ?? []).map(digestOfPolicy);
    const of = { tenant: row.tenant_id, application: row.application_id };
    const ended = await store.select(approvalsUnderOthers(of, digests));
    const fact = { entity: 'application', id: row.application_id, operation: 'update' } as const;
    return {
      change: {
        replace: { applications: [row] },
        remove: { approvals: ended },
        entries: [
          entryOf(caller, now, fact),
          ...ended.map(({ approval_id: id }) =>
            entryOf(caller, now, { entity: 'approval', id, operation: 'delete' }),
          ),
        ],
      },
      reply: {
        status: 200,
        etag: tagOf('applications', row),
        body: viewApplication(row, keys),
      },
      before: () => tagOf('applications', found),
    };
  };
}

export interface ApplicationQuery extends PageQuery {
  readonly id?: readonly string[];
  readonly type?: readonly ApplicationKind[];
  /** `*` stands for any characters. */
  readonly name?: string;
}

const newestFirst = {
  route: 'GET /applications',
  table: 'applications',
  count: applicationCount,
  page: applicationPage,
} as const;

export interface ApplicationListing extends ApplicationReading, ListTools {}

/**
 * Newest first. An application or a key that was altered outside the vault is left out, and an entry records that it
 * was altered.
 * @throws VaultError `validation_failed` for an invalid cursor.
 */
export function listApplications(
  tools: ApplicationListing,
  caller: Caller,
  query: ApplicationQuery,
): Decide {
  const { store, clock } = tools;
  const { tenant } = caller;
  const ids = query.id?.flatMap((id) => parseUuid<ApplicationId>(id) ?? []);
  const filter = { tenant: tenant.id, ids, kinds: query.type, name: query.name };
  const readPage = offsetPage(newestFirst, tenant, { filter, query });
  return async () => {
    const { rows: found, pagination } = await readPage(store, payerOf(caller));
    const onPage = found.map(({ application_id }) => application_id);
    const keys = await keysOf(store, tenant.id, onPage);
    const { rows: proven, altered } = provenRows(tenant, 'api_keys', keys);
    const { data, entries } = await listed(tools, caller, {
      table: 'applications',
      found,
      show: (row) => viewApplication(row, namedKeys([row], proven)),
    });
    return {
      change: { entries: [...entries, ...alteredEntries(caller, clock.now(), altered, 'list')] },
      reply: { status: 200, body: { pagination, data } },
    };
  };
}

/** Without any key itself. */
function viewApplication(row: Row<'applications'>, keys: readonly Row<'api_keys'>[]): object {
  const own = keys.filter((key) => key.application_id === row.application_id);
  return withKeys(
    row,
    own.map((key) => viewKey(key)),
  );
}

/** The response to its creation, the only one that shows its first key. */
function viewNewApplication(row: Row<'applications'>, key: NewKey | undefined): object {
  if (key === undefined) return withKeys(row, []);
  return { ...withKeys(row, [viewKey(key.row, key.text)]), key: key.text };
}

function withKeys(row: Row<'applications'>, keys: readonly object[]): object {
  return {
    id: row.application_id,
    tenant_id: row.tenant_id,
    name: row.name,
    type: row.type,
    keys,
    origins: originsOf(row),
    egress_budget: storedBudget(row),
    egress: storedPolicies(row),
    ...accessOf(row),
    ...viewHistory(row),
  };
}

/** Quotas of stored bytes: whatever commits a growing change, it commits it under the ceilings of its tenant. */
import { type Clock, hour } from '../../lib/clock.ts';
import { VaultError } from '../../lib/errors.ts';
import { ExpiringMap } from '../../lib/expiring-map.ts';
import type { ApplicationId, TenantId } from '../../lib/ids.ts';
import { type Quotas, quotaRows } from '../../rules/settings.ts';
import type { Tenants } from '../../rules/tenant.ts';
import type { Change } from '../../store/change.ts';
import { growsStorage, type StorageCeiling, type StorageQuota } from '../../store/growth.ts';
import type { Store } from '../../store/store.ts';

export interface StorageQuotaTools {
  readonly store: Store;
  readonly tenants: Tenants;
  readonly clock: Clock;
}

/** Applications whose kind a thread remembers. It never changes. */
const kindsMax = 10_000;

/**
 * The store, whose `commit` throws `unprocessable` where the change would leave more bytes than a quota permits.
 * The quotas are those of at most a second ago; what is stored is what the database has counted at the commit.
 */
export function underStorageQuotas({ store, tenants, clock }: StorageQuotaTools): Store {
  const kinds = new ExpiringMap<string, boolean>({ clock, ageMsMax: hour, entriesMax: kindsMax });

  async function isPublic(tenant: TenantId, application: ApplicationId): Promise<boolean> {
    const name = `${tenant} ${application}`;
    const known = kinds.get(name);
    if (known !== undefined) return known;
    const key = { tenant_id: tenant, application_id: application };
    const found = (await store.get('applications', key))?.type === 'public';
    kinds.set(name, found);
    return found;
  }

  async function ceilingsOf(change: Change): Promise<StorageCeiling[]> {
    const [{ tenant_id }] = change.entries;
    const quotas = (tenants.known(tenant_id) ?? (await tenants.find(tenant_id)))?.quotas;
    if (quotas === undefined) return [];
    const ceilings: StorageCeiling[] = [];
    const add = (quota: StorageQuota, of: Partial<StorageCeiling>) => {
      if (isUnlimited(quotas, quota)) return;
      ceilings.push({ quota, tenant_id, ...of, bytes: quotas[quota] });
    };
    add('token_storage', {});
    for (const application_id of chargedBy(change)) {
      if (await isPublic(tenant_id, application_id)) {
        add('public_application_storage', { application_id });
      }
    }
    return ceilings;
  }

  return {
    ...store,
    commit: async (change) => {
      if (!growsStorage(change)) return store.commit(change);
      const ceilings = await ceilingsOf(change);
      if (ceilings.length === 0) return store.commit(change);
      const outcome = await store.commit({ ...change, ceilings });
      const exceeded = ceilings.find(({ quota }) => outcome.conflict === `stored_bytes.${quota}`);
      if (exceeded) throw storageExceeded(exceeded);
      return outcome;
    },
  };
}

/** The largest value of a quota is no limit, and nothing is compared for it. */
function isUnlimited(quotas: Quotas, quota: StorageQuota): boolean {
  return quotas[quota] >= quotaRows[quota].max;
}

/**
 * The applications whose stored bytes the change makes more by their own doing: what another application does
 * to a token counts as well, but is not refused for the sake of the one that made the token.
 */
function chargedBy({ insert, replace }: Change): ReadonlySet<ApplicationId> {
  return new Set([
    ...(insert?.tokens ?? []).map(({ created_by }) => created_by),
    ...(insert?.token_intents ?? []).map(({ created_by }) => created_by),
    ...(insert?.sessions ?? []).map(({ application_id }) => application_id),
    ...(insert?.replies ?? []).flatMap(({ charged_to }) => charged_to ?? []),
    ...(replace?.tokens ?? []).flatMap(({ created_by, modified_by }) =>
      modified_by === created_by ? [created_by] : [],
    ),
  ]);
}

function storageExceeded({ quota, bytes }: StorageCeiling): VaultError {
  const whose = quota === 'token_storage' ? 'A tenant' : 'A public application';
  return new VaultError('unprocessable', {
    public:
      `${whose} stores at most ${bytes} bytes (quota ${quota}), and this request would exceed that. ` +
      'Nothing was done. Delete tokens, or let stored responses and sessions expire.',
  });
}

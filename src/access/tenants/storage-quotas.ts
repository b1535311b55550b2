/** Quotas of stored bytes: whatever commits a growing change, it commits it under the ceilings of its tenant. */
import { type Clock, hour } from '../../base/clock.ts';
import { VaultError } from '../../base/errors.ts';
import { ExpiringMap } from '../../base/expiring-map.ts';
import type { ApplicationId } from '../../base/ids.ts';
import { ifProven } from '../../rules/proven-row.ts';
import { type Quotas, quotaRows } from '../../rules/settings.ts';
import type { Tenant, Tenants } from '../../rules/tenant.ts';
import type { Change } from '../../store/change.ts';
import type { CommitStep } from '../../store/commit/steps.ts';
import { growsStorage, type StorageCeiling, type StorageQuota } from '../../store/growth.ts';
import type { Store } from '../../store/store.ts';

export interface StorageQuotaTools {
  readonly store: Pick<Store, 'get'>;
  readonly tenants: Tenants;
  readonly clock: Clock;
}

/** Applications whose kind a thread caches. The kind never changes. */
const kindsMax = 10_000;

/**
 * A commit throws `unprocessable` if the change would exceed a quota of stored bytes. The quotas are at most a second
 * old; the stored bytes are those that the database has counted at the commit.
 */
export function underStorageQuotas({ store, tenants, clock }: StorageQuotaTools): CommitStep {
  const kinds = new ExpiringMap<string, boolean>({ clock, ageMsMax: hour, entriesMax: kindsMax });

  /** An application that was altered outside the vault counts as public: no quota is lifted by altering its row. */
  function isPublic(tenant: Tenant, application: ApplicationId): MaybeRead<boolean> {
    const name = `${tenant.id} ${application}`;
    const known = kinds.get(name);
    if (known !== undefined) return known;
    const key = { tenant_id: tenant.id, application_id: application };
    return store.get('applications', key).then((stored) => {
      const row = stored && ifProven(tenant, 'applications', stored);
      if (stored && row === undefined) return true;
      kinds.set(name, row?.type === 'public');
      return row?.type === 'public';
    });
  }

  function ceilingsOf(change: Change): MaybeRead<readonly StorageCeiling[]> {
    const [{ tenant_id }] = change.entries;
    const known = tenants.known(tenant_id);
    if (known) return ceilingsIn(known, change);
    return tenants.find(tenant_id).then((found) => (found ? ceilingsIn(found, change) : []));
  }

  function ceilingsIn(tenant: Tenant, change: Change): MaybeRead<readonly StorageCeiling[]> {
    const { id, quotas } = tenant;
    const ceiling = (quota: StorageQuota, of: Pick<StorageCeiling, 'application_id'> = {}) =>
      isUnlimited(quotas, quota) ? [] : [{ quota, tenant_id: id, ...of, bytes: quotas[quota] }];
    const ofTenant = ceiling('token_storage');
    if (isUnlimited(quotas, 'public_application_storage')) return ofTenant;
    const charged = [...chargedBy(change)];
    const arePublic = charged.map((application) => isPublic(tenant, application));
    const withApplications = (known: readonly boolean[]) => [
      ...ofTenant,
      ...charged.flatMap((application_id, at) =>
        known[at] ? ceiling('public_application_storage', { application_id }) : [],
      ),
    ];
    return areRead(arePublic)
      ? withApplications(arePublic)
      : Promise.all(arePublic).then(withApplications);
  }

  return {
    isForRows: true,
    // Cached values are not awaited.
    prepare: (change) => {
      if (!growsStorage(change)) return change;
      const ceilings = ceilingsOf(change);
      return ceilings instanceof Promise
        ? ceilings.then((read) => under(read, change))
        : under(ceilings, change);
    },
    conclude: ({ change, outcome }) => {
      if (outcome?.conflict === undefined) return;
      const exceeded = change.ceilings?.find(
        ({ quota }) => outcome.conflict === `stored_bytes.${quota}`,
      );
      if (exceeded) throw storageExceeded(exceeded);
    },
  };
}

function under(ceilings: readonly StorageCeiling[], change: Change): Change {
  return ceilings.length === 0 ? change : { ...change, ceilings };
}

/** Itself where it is remembered. */
type MaybeRead<T> = T | Promise<T>;

function areRead<T>(all: readonly MaybeRead<T>[]): all is readonly T[] {
  return all.every((one) => !(one instanceof Promise));
}

/** The largest value of a quota means no limit, and nothing is compared for it. */
function isUnlimited(quotas: Quotas, quota: StorageQuota): boolean {
  return quotas[quota] >= quotaRows[quota].max;
}

/**
 * The applications whose own actions in the change add to their stored bytes. A change of a token by another
 * application counts as well, but is not refused because of the quota of the application that made the token.
 */
function chargedBy({ insert = {}, replace = {} }: Change): ReadonlySet<ApplicationId> {
  const charged = new Set<ApplicationId>();
  for (const { created_by } of insert.tokens ?? []) charged.add(created_by);
  for (const { created_by } of insert.token_intents ?? []) charged.add(created_by);
  for (const { application_id } of insert.sessions ?? []) charged.add(application_id);
  for (const { charged_to } of insert.replies ?? []) if (charged_to) charged.add(charged_to);
  for (const { charged_to } of insert.events ?? []) if (charged_to) charged.add(charged_to);
  for (const { created_by, modified_by } of replace.tokens ?? []) {
    if (modified_by === created_by) charged.add(created_by);
  }
  return charged;
}

function storageExceeded({ quota, bytes }: StorageCeiling): VaultError {
  const whose = quota === 'token_storage' ? 'A tenant' : 'A public application';
  return new VaultError('unprocessable', {
    public:
      `${whose} stores at most ${bytes} bytes (quota ${quota}), and this request would exceed that. ` +
      'Nothing was done. Delete tokens, or let stored responses and sessions expire.',
  });
}

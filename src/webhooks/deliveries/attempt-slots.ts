/** Limits concurrent delivery attempts, in total and per tenant, and chooses the next webhook. */
import type { TenantId } from '../../base/ids.ts';

export interface AttemptSlots {
  /** False if the tenant gets no slot now; then `onFree` is called once, when a slot is free. */
  take(tenant: TenantId, onFree: () => void): boolean;
  free(tenant: TenantId): void;
}

export interface AttemptLimits {
  readonly allMax: number;
  readonly tenantMax: number;
}

/**
 * Among waiting tenants, the one with the fewest running attempts comes first, and among its webhooks the one that
 * has waited longest. Thus tenants whose receivers hang delay others by at most one attempt.
 */
export function createAttemptSlots({ allMax, tenantMax }: AttemptLimits): AttemptSlots {
  const waiting = new Map<TenantId, Set<() => void>>();
  const takenBy = new Map<TenantId, number>();
  let taken = 0;

  function hasRoom(tenant: TenantId): boolean {
    return taken < allMax && (takenBy.get(tenant) ?? 0) < tenantMax;
  }

  function count(tenant: TenantId, change: 1 | -1): void {
    taken += change;
    const ofTenant = (takenBy.get(tenant) ?? 0) + change;
    if (ofTenant === 0) takenBy.delete(tenant);
    else takenBy.set(tenant, ofTenant);
  }

  function nextTenant(): TenantId | undefined {
    let chosen: TenantId | undefined;
    let fewest = Number.POSITIVE_INFINITY;
    for (const tenant of waiting.keys()) {
      const ofTenant = takenBy.get(tenant) ?? 0;
      if (ofTenant >= fewest || !hasRoom(tenant)) continue;
      chosen = tenant;
      fewest = ofTenant;
    }
    return chosen;
  }

  /** Removes the webhook from the queue before calling it, because it may have to wait again. */
  function wakeOneOf(tenant: TenantId): void {
    const ofTenant = waiting.get(tenant) ?? new Set();
    const [onFree] = ofTenant;
    if (onFree) ofTenant.delete(onFree);
    if (ofTenant.size === 0) waiting.delete(tenant);
    onFree?.();
  }

  return {
    take: (tenant, onFree) => {
      if (hasRoom(tenant)) {
        count(tenant, 1);
        return true;
      }
      const ofTenant = waiting.get(tenant) ?? new Set();
      waiting.set(tenant, ofTenant.add(onFree));
      return false;
    },
    free: (tenant) => {
      count(tenant, -1);
      for (let next = nextTenant(); next; next = nextTenant()) wakeOneOf(next);
    },
  };
}

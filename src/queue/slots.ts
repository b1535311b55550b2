/** Slots: how many attempts of a queue are under way in this process, in total and per tenant, and who is next. */
import { FairAdmission, type Party } from '../base/admission.ts';
import type { TenantId } from '../base/ids.ts';

export interface AttemptLimits {
  readonly allMax: number;
  readonly tenantMax: number;
  /** The slots that no tenant's second attempt gets, nor any further one. They need a `tenantMax` of 2. */
  readonly forFirstMin?: number;
}

export interface AttemptSlots {
  /**
   * Calls `begin` once the tenant has a slot, now or later, with the function that frees the slot.
   * @returns a function that withdraws while it waits.
   */
  enter(tenant: TenantId, begin: (free: () => void) => void): () => void;
}

/**
 * Among waiting tenants, the one with the fewest slots comes first, and of its entrants the one that has waited
 * longest. Thus tenants whose attempts take minutes delay the others by at most one attempt.
 */
export function createSlots({ allMax, tenantMax, forFirstMin = 0 }: AttemptLimits): AttemptSlots {
  const admission = new FairAdmission({
    now: () => performance.now(),
    waitMsMax: Number.POSITIVE_INFINITY,
    limits: { underWayMax: allMax },
    order: 'under way',
  });
  const all = admission.part(admission.root, 'all', {});
  const further = admission.part(admission.root, 'further', { underWayMax: allMax - forFirstMin });
  /** With slots for first attempts: the tenants that hold one, or wait for it. */
  const holders = new Set<TenantId>();

  const enter = (party: Party, begin: (free: () => void) => void, onEnd = () => {}) => {
    const withdraw = admission.enter(party, {
      begin: (admitted) =>
        begin(() => {
          admitted.end();
          onEnd();
        }),
      refuse: () => undefined,
    });
    return () => {
      withdraw();
      onEnd();
    };
  };

  return {
    enter: (tenant, begin) => {
      if (forFirstMin === 0) {
        return enter(admission.part(all, tenant, { underWayMax: tenantMax }), begin);
      }
      const underWayMax = 1;
      if (holders.has(tenant))
        return enter(admission.part(further, tenant, { underWayMax }), begin);
      holders.add(tenant);
      const own = admission.part(all, tenant, { underWayMax });
      return enter(own, begin, () => holders.delete(tenant));
    },
  };
}

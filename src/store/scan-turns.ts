/** Turns of scans: which one is next, and how many may be under way. The long ones of one caller hold up no other. */
import { type AdmissionRefusal, FairAdmission, type Party, runInTurn } from '../base/admission.ts';
import { second } from '../base/clock.ts';
import { VaultError } from '../base/errors.ts';
import type { ScanPayer } from './store.ts';
import { overloaded } from './unavailable.ts';

const waitMsMax = 10 * second;

/** Of the vault's own work, and of all callers. */
export const scansWaitingMax = 1_000;

const limits = {
  group: { waitingMax: scansWaitingMax },
  tenant: { waitingMax: 200 },
  payer: { waitingMax: 50 },
} as const;

export interface ScanTurns {
  /**
   * Runs the scan when it is its turn. Rejects with `too_many_requests` where too many scans of the caller wait, or
   * with `overloaded` where the vault's own do.
   */
  take<R>(payer: ScanPayer, scan: () => Promise<R>): Promise<R>;
}

/** @param atOnce scans that are under way together. A tenant has half of them at most, so that another can begin. */
export function createScanTurns(atOnce: number): ScanTurns {
  const admission = new FairAdmission({
    now: () => performance.now(),
    waitMsMax,
    limits: { underWayMax: atOnce },
  });
  const own = admission.part(admission.root, 'vault', limits.group);
  const callers = admission.part(admission.root, 'callers', limits.group);
  const ofTenant = { ...limits.tenant, underWayMax: Math.ceil(atOnce / 2) };

  function partyOf(payer: ScanPayer): Party {
    if (payer === 'vault') return own;
    const tenant = admission.part(callers, payer.tenant, ofTenant);
    return admission.part(tenant, payer.name, limits.payer);
  }

  return {
    take: (payer, scan) =>
      runInTurn(admission, partyOf(payer), {
        work: scan,
        errorOf: (refusal) => refusalOf(payer, refusal),
      }),
  };
}

function refusalOf(payer: ScanPayer, refusal: AdmissionRefusal): VaultError {
  if (payer === 'vault') return overloaded(`a scan of the vault itself: ${refusal}`);
  return new VaultError('too_many_requests', {
    public: 'Too many long queries of this caller wait; try again in 1 s.',
    headers: { 'retry-after': '1' },
  });
}

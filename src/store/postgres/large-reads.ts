/** Turns of reads of large rows: few at a time, so that opening and sending them leaves time for what others read. */
import { FairAdmission, runInTurn } from '../../base/admission.ts';
import { second } from '../../base/clock.ts';
import { overloaded } from '../unavailable.ts';

const waitMsMax = 30 * second;

/** Of all tenants, and of one. */
export const largeReadsWaitingMax = { callers: 1_000, tenant: 700 } as const;

/** Runs the read when it is the tenant's turn. Rejects with `overloaded` where too many of it wait. */
export type LargeReads = <R>(tenant: string, read: () => Promise<R>) => Promise<R>;

export function createLargeReads(atOnce: number): LargeReads {
  const admission = new FairAdmission({
    now: () => performance.now(),
    waitMsMax,
    limits: { underWayMax: atOnce },
  });
  const callers = admission.part(admission.root, 'callers', {
    waitingMax: largeReadsWaitingMax.callers,
  });
  const limits = {
    underWayMax: Math.ceil(atOnce / 2),
    waitingMax: largeReadsWaitingMax.tenant,
  };

  return (tenant, read) =>
    runInTurn(admission, admission.part(callers, tenant, limits), {
      work: read,
      errorOf: (refusal) => overloaded(`reads of large rows: ${refusal}`),
    });
}

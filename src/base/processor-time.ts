/** Which work uses the processor time of a thread: what one request costs in all of its parts. */
import { AsyncLocalStorage } from 'node:async_hooks';

/** The party that pays for work, in milliseconds. */
export interface Payer {
  charge(ms: number): void;
  /** Waits until its work may continue. `undefined`: it may do so now. */
  nextStep(): Promise<void> | undefined;
  /** Whether no other payer was active recently. */
  readonly isAlone: boolean;
}

interface PaidWork {
  readonly payer: Payer;
  readonly lap: () => void;
}

/** Of this thread. Work without a payer is the vault's own. */
const paidWork = new AsyncLocalStorage<PaidWork>();

/** False for work without a payer. */
export function isAlone(): boolean {
  return paidWork.getStore()?.payer.isAlone === true;
}

/**
 * Waits until the current work may continue, after its payer was charged for what it has done so far. `undefined`: it
 * may continue now. False for work without a payer.
 */
export function nextStep(): Promise<void> | undefined | false {
  const work = paidWork.getStore();
  if (work === undefined) return false;
  work.lap();
  return work.payer.nextStep();
}

export interface ProcessorTime {
  /** Runs work for the payer, including everything that it calls and awaits. */
  run(payer: Payer, work: () => void): void;
  /**
   * Charges the time since the last call to the current payer. Call it where work is about to wait, so that hardly
   * any time of one payer is charged to the next.
   */
  lap(): void;
  /** Time so far for which nothing has paid. */
  unpaidMs(): number;
}

/** A lap this long, in milliseconds, may be one in which the system ran other processes. */
const doubtfulMs = 2;
/** After so many milliseconds of laps the thread's processor time is read again, so that small errors do not add up. */
const checkedMs = 20;

/** The time in which the thread waits for events, or the system runs other processes, is charged to no payer. */
export function createProcessorTime(): ProcessorTime {
  const { nodeTiming } = performance;
  let last = 0;
  /** Processor time of the thread when it was read last, and laps since then: to read it costs as much as some laps. */
  let usedAtCheck = threadMs();
  let sinceCheck = 0;
  let unpaid = 0;
  const passed = () => {
    const busy = performance.now() - nodeTiming.idleTime;
    let ms = busy - last;
    last = busy;
    sinceCheck += ms;
    if (ms > doubtfulMs || sinceCheck > checkedMs) {
      const used = threadMs();
      const others = sinceCheck - ms;
      ms = Math.min(ms, Math.max(0, used - usedAtCheck - others));
      usedAtCheck = used;
      sinceCheck = 0;
    }
    return ms;
  };
  const lap = () => {
    const ms = passed();
    const work = paidWork.getStore();
    if (work) work.payer.charge(ms);
    else unpaid += ms;
  };
  return {
    lap,
    unpaidMs: () => {
      unpaid += passed();
      return unpaid;
    },
    run: (payer, work) => {
      // The time since the last lap belongs to other work.
      unpaid += passed();
      paidWork.run({ payer, lap }, () => {
        work();
        lap();
      });
    },
  };
}

/** The processor time of this thread so far, in milliseconds. */
export function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

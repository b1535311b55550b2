/** Which work uses the processor time of a thread: what one request costs in all of its parts. */
import { AsyncLocalStorage } from 'node:async_hooks';

/** The party that pays for work, in milliseconds. */
export interface Payer {
  charge(ms: number): void;
}

export interface ProcessorTime {
  /** Runs work for the payer, including everything that it calls and awaits. */
  run(payer: Payer, work: () => void): void;
  /**
   * Charges the time since the last call to the current payer. Call it where work is about to wait, so that hardly
   * any time of one payer is charged to the next.
   */
  lap(): void;
}

/** A lap this long, in milliseconds, may be one in which the system ran other processes. */
const doubtfulMs = 2;
/** After so many milliseconds of laps the thread's processor time is read again, so that small errors do not add up. */
const checkedMs = 20;

/** The time in which the thread waits for events, or the system runs other processes, is charged to no payer. */
export function createProcessorTime(): ProcessorTime {
  const payers = new AsyncLocalStorage<Payer>();
  const { nodeTiming } = performance;
  let last = 0;
  /** Processor time of the thread when it was read last, and laps since then: to read it costs as much as some laps. */
  let usedAtCheck = threadMs();
  let sinceCheck = 0;
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
    payers.getStore()?.charge(ms);
  };
  return {
    lap,
    run: (payer, work) => {
      // The time since the last lap belongs to other work.
      passed();
      payers.run(payer, () => {
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

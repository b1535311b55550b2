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

/** The time in which the thread waits for events is charged to no payer. */
export function createProcessorTime(): ProcessorTime {
  const payers = new AsyncLocalStorage<Payer>();
  const { nodeTiming } = performance;
  let last = 0;
  const passed = () => {
    const busy = performance.now() - nodeTiming.idleTime;
    const ms = busy - last;
    last = busy;
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

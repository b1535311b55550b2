/** Which work uses the processor time of a thread: what one request costs, wherever its parts run. */
import { AsyncLocalStorage } from 'node:async_hooks';

/** What pays for work, in milliseconds. */
export interface Payer {
  charge(ms: number): void;
}

export interface ProcessorTime {
  /** Begins work that is the payer's, with all that it calls and waits for. */
  run(payer: Payer, work: () => void): void;
  /**
   * Charges whoever's work it is with the time since the last call. It is called where work stops for something that
   * it waits for, so that hardly any time passes for one payer and is charged to the next.
   */
  lap(): void;
}

/** Time in which the thread waits for events is nobody's. */
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
      // What was done since the last lap was not done for this one.
      passed();
      payers.run(payer, () => {
        work();
        lap();
      });
    },
  };
}

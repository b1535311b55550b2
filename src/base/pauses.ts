/** Pauses between the steps of long work, in which the process serves others, and between repeated failures. */
import { LinkedList, type ListLink } from './linked-list.ts';
import { isAlone, nextStep } from './processor-time.ts';

/** How long one step may block others, and how long while there are no others. */
const stepMs = { shared: 0.5, alone: 5 } as const;

interface PausedWork {
  readonly resume: () => void;
  link: ListLink<PausedWork> | undefined;
}

/** Work of the vault itself, the longest pause first. One step of it is done in each turn of the event loop. */
const paused = new LinkedList<PausedWork>();

function untilTurn(): Promise<void> {
  return new Promise((resume) => {
    const work: PausedWork = { resume, link: undefined };
    work.link = paused.add(work);
    if (paused.size === 1) setImmediate(resumeFirst);
  });
}

function resumeFirst(): void {
  const { first } = paused;
  if (!first?.link) return;
  paused.remove(first.link);
  if (paused.size > 0) setImmediate(resumeFirst);
  first.resume();
}

/**
 * Called between two steps. The caller awaits the result, which lets others run after they have waited long enough:
 * work of a request then waits for its turn among all requests.
 */
export type Pause = () => Promise<void> | undefined;

export function createPause(): Pause {
  let began = performance.now();
  const begin = () => {
    began = performance.now();
  };
  return () => {
    const ms = performance.now() - began;
    if (ms < stepMs.shared || (ms < stepMs.alone && isAlone())) return undefined;
    const next = nextStep();
    if (next !== undefined) return (next || untilTurn()).then(begin);
    begin();
    return undefined;
  };
}

export interface GrowingPause {
  /** The next pause in milliseconds. */
  next(): number;
  /** Starts again with the shortest pause. */
  reset(): void;
}

/** Each pause is twice as long as the previous one, up to a limit. */
export function createGrowingPause({
  firstMs,
  maxMs,
}: {
  readonly firstMs: number;
  readonly maxMs: number;
}): GrowingPause {
  let following = firstMs;
  return {
    next: () => {
      const ms = following;
      following = Math.min(maxMs, following * 2);
      return ms;
    },
    reset: () => {
      following = firstMs;
    },
  };
}

/** Code that computes for long goes on behind the vault: at a lower priority, by thread and by session. */
import { readFileSync, writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';

/** Processor time that a call may use before. */
const promptMsMax = 100;

/** A nice value: a fifteenth of the processor where the vault wants all of it. */
export const lowPriority = 12;

const checkMs = 100;
/** Of what `/proc` counts processor time in, the same on every machine. */
const msPerTick = 10;

/**
 * Watches a process and those below it from now on. Elsewhere than on Linux it does nothing.
 * @param onLow is called once they have the lower priority, which they keep.
 * @returns what ends it.
 */
export function watchProcessor(pid: number, onLow: () => void): () => void {
  if (process.platform !== 'linux') return () => undefined;
  let usedBefore: number | undefined;
  const check = () => {
    const pids = processesFrom(pid);
    const used = pids.reduce((sum, one) => sum + processorMsOf(one), 0);
    usedBefore ??= used;
    if (used - usedBefore < promptMsMax) timer = setTimeout(check, checkMs).unref();
    else {
      for (const one of pids) lower(one);
      onLow();
    }
  };
  let timer = setTimeout(check, checkMs).unref();
  return () => clearTimeout(timer);
}

/** A process that is no more by now needs no priority. */
function lower(pid: number): void {
  attempt(() => setPriority(pid, lowPriority));
  // Where sessions share the processor, the priority of a thread counts only within its own.
  attempt(() => writeFileSync(`/proc/${pid}/autogroup`, String(lowPriority)));
}

/** The process itself and all below it. */
function processesFrom(pid: number): readonly number[] {
  const children = attempt(() => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')) ?? '';
  return [pid, ...(children.match(/\d+/g) ?? []).flatMap((child) => processesFrom(Number(child)))];
}

/** By all its threads. */
function processorMsOf(pid: number): number {
  const line = attempt(() => readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? '';
  // The name before it may hold anything.
  const [, , , , , , , , , , , user = 0, system = 0] = line
    .slice(line.lastIndexOf(')') + 2)
    .split(' ');
  return (Number(user) + Number(system)) * msPerTick;
}

function attempt<T>(act: () => T): T | undefined {
  try {
    return act();
  } catch {
    return undefined;
  }
}

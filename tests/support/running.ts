/** Processes of the system by number: those below one, whether one runs, and signals to what may have ended. */
import { readdirSync, readFileSync } from 'node:fs';

/** How the system says that a process or a thread is no more. */
const ended: ReadonlySet<string> = new Set(['ENOENT', 'ESRCH']);

/** The processes below one, at any depth. */
export function descendants(pid = process.pid): readonly number[] {
  return whileItRuns(() => {
    const threads = readdirSync(`/proc/${pid}/task`);
    const children = threads.flatMap((thread) => childrenOf(pid, thread));
    return children.flatMap((child) => [child, ...descendants(child)]);
  }, []);
}

/** The processes that a thread started, by default its process's first one. */
export function childrenOf(pid: number, thread: number | string = pid): readonly number[] {
  const file = `/proc/${pid}/task/${thread}/children`;
  const text = whileItRuns(() => readFileSync(file, 'utf8').trim(), '');
  return text === '' ? [] : text.split(' ').map(Number);
}

/** False also for one that has ended while nobody has asked how: a zombie holds nothing. */
export function isRunning(pid: number): boolean {
  return whileItRuns(() => !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8')), false);
}

/** False where it has ended, which may be between any look at it and this. */
export function killIfAlive(pid: number, signal: NodeJS.Signals = 'SIGKILL'): boolean {
  return whileItRuns(() => process.kill(pid, signal), false);
}

/** `otherwise` where the process or its thread ended before it was asked for, or while it was. */
function whileItRuns<Value>(ask: () => Value, otherwise: Value): Value {
  try {
    return ask();
  } catch (error) {
    if (!ended.has((error as NodeJS.ErrnoException).code ?? '')) throw error;
    return otherwise;
  }
}

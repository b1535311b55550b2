/** Until when a server runs, and when it reads its files again: signals, and the end of what started it. */
import { closeSync, openSync, readFileSync } from 'node:fs';
import { systemCodeOf } from '../base/errors.ts';
import { readVariable } from '../runtime/config/config.ts';
import type { Terminal } from './terminal/terminal.ts';

export interface Lifetime {
  /** Resolves when the server shall stop, with the reason. */
  readonly stopped: Promise<string>;
  /** From now on called for each SIGHUP, and at once if there was one before. */
  onReload(reload: () => void): void;
}

const pollMs = 500;

/** Listens for signals at once, so that one during the start is not lost. */
export function followSignals({ env, stdout }: Terminal): Lifetime {
  const { promise: stopped, resolve: stop } = Promise.withResolvers<string>();
  // They stay: a terminal sends SIGINT to npm and to the server, and npm sends it to the server again.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => stop(`it received ${signal}`));
  }
  let isAsked = false;
  let reload = () => {
    isAsked = true;
  };
  // Under `nohup` the output is a file, and then the end of the terminal is not that of the server.
  const hasTerminal = stdout.isTTY === true && canOpenTerminal();
  process.on('SIGHUP', () => {
    if (endsWithSignal(hasTerminal)) stop('its terminal was closed');
    else reload();
  });
  // The channel to `bin/older-node.js`, which ends with that process however that ends.
  process.once('disconnect', () => stop('what started it has ended'));
  // The listener alone would keep a start that is refused from ending.
  process.channel?.unref();
  followNpm(env, () => stop('npm, which started it, has ended'));
  return {
    stopped,
    onReload: (next) => {
      reload = next;
      if (isAsked) reload();
    },
  };
}

/** A terminal sends SIGHUP when it closes. Windows sends it then only, and ends the process a little later. */
function endsWithSignal(hadTerminal: boolean): boolean {
  return process.platform === 'win32' || (hadTerminal && !canOpenTerminal());
}

/** Whether there is a terminal that controls this process; none is left when it has been closed. */
function canOpenTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return true;
  } catch {
    return false;
  }
}

/**
 * npm passes SIGTERM on to the shell that it runs a command in, and that shell dies of it alone; a SIGKILL is not
 * passed on at all. So a server that npm or npx started ends when one of the processes between them does.
 */
function followNpm(env: Terminal['env'], onEnded: () => void): void {
  const ancestors = ancestorsToNpm(env);
  if (ancestors.length === 0) return;
  const timer = setInterval(() => {
    try {
      if (isBelow(ancestors)) return;
    } catch {
      // It cannot be seen at the moment, for lack of descriptors.
      return;
    }
    clearInterval(timer);
    onEnded();
  }, pollMs);
  timer.unref();
}

/** Npm, the shell, and what stands in for a Node that is too old. */
const ancestorsMax = 3;

/** From the parent to npm; none where npm is not among them. */
function ancestorsToNpm(env: Terminal['env']): readonly number[] {
  const ancestors = [process.ppid];
  // On other systems, a shell replaces itself with its only command.
  if (process.platform !== 'linux')
    return readVariable(env, 'npm_lifecycle_event') ? ancestors : [];
  for (const pid of ancestors) {
    if (/^npm /.test(ofProcess(pid, 'cmdline'))) return ancestors;
    if (ancestors.length < ancestorsMax) ancestors.push(parentOf(pid));
  }
  return [];
}

/** A process whose parent has ended gets another one at once. */
function isBelow([parent, ...others]: readonly number[]): boolean {
  let child = parent;
  if (process.ppid !== parent) return false;
  return others.every((pid) => {
    const isChild = parentOf(child ?? 0) === pid;
    child = pid;
    return isChild;
  });
}

/** 0 where there is no such process any more. */
function parentOf(pid: number): number {
  return Number(/^\d+ \(.*\) \S (\d+) /s.exec(ofProcess(pid, 'stat'))?.[1] ?? 0);
}

function ofProcess(pid: number, file: 'cmdline' | 'stat'): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch (error) {
    if (lacking.has(systemCodeOf(error) ?? '')) throw error;
    return '';
  }
}

/** That there is no descriptor for the file says nothing about the process. */
const lacking: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE']);

/** A tenant's code that exceeds its share of the processor runs at a lower priority than the vault. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';

/** A nice value: a thirtieth of a processor that the vault fully uses. */
export const lowPriority = 15;

/** The share of a core that a tenant may use at the vault's priority: the average, and the burst. */
const shareOfCore = 0.1;
const shareMsMax = 3_000;

/** The interval between two measurements of a process. */
const lookMs = 100;
/** The charge for a process that ended before it was measured: about the cost of starting one. */
const unseenMs = 200;
/** The unit of processor time in `/proc`, the same on every machine. */
const msPerTick = 10;

/** The processor time of a tenant's processes. The charge decays over time. */
export class ProcessorShare {
  #usedMs = 0;
  #at: number;
  readonly #now: () => number;
  readonly #onSpent: () => void;

  /**
   * @param onSpent is called each time the share is used up.
   * @param now a monotonic clock in milliseconds, by which the charge decays.
   */
  constructor(onSpent: () => void = () => undefined, now = () => performance.now()) {
    this.#onSpent = onSpent;
    this.#now = now;
    this.#at = now();
  }

  use(ms: number): void {
    const wasSpent = this.isSpent;
    this.#usedMs = this.#unforgivenMs + ms;
    this.#at = this.#now();
    if (this.isSpent && !wasSpent) this.#onSpent();
  }

  get isSpent(): boolean {
    return this.#unforgivenMs > shareMsMax;
  }

  get isUnused(): boolean {
    return this.#unforgivenMs === 0;
  }

  get #unforgivenMs(): number {
    return Math.max(0, this.#usedMs - (this.#now() - this.#at) * shareOfCore);
  }
}

/** A child process under watch. Another process may get its id once it has ended. */
interface WatchedChild {
  readonly pid?: number | undefined;
  readonly exitCode: number | null;
  readonly signalCode: string | null;
}

/**
 * Charges the processor time of a process and its descendants to their tenant. Has no effect on systems other than
 * Linux.
 */
export class ProcessorWatch {
  readonly #child: WatchedChild;
  readonly #share: ProcessorShare;
  #chargedMs = 0;
  #lookedAt = 0;
  readonly #onRefused: () => void;
  #isLow = false;
  #timer: NodeJS.Timeout | undefined;

  /**
   * Starts the process at the lower priority if the share is already used up.
   *
   * @param onRefused is called if the system does not let the vault lower a priority.
   */
  constructor(child: WatchedChild, share: ProcessorShare, onRefused: () => void = () => undefined) {
    this.#child = child;
    this.#share = share;
    this.#onRefused = onRefused;
    this.#lowerWhereSpent();
  }

  /** Watches while a call runs. */
  begin(): void {
    this.#timer = setInterval(() => this.look(), lookMs).unref();
  }

  end(): void {
    clearInterval(this.#timer);
    if (performance.now() - this.#lookedAt >= lookMs) this.look();
  }

  /** Also called before the process is killed, because the measurement is impossible afterwards. */
  look(): void {
    const pids = this.#pids();
    if (pids.length === 0) return;
    this.#lookedAt = performance.now();
    const used = pids.reduce((sum, pid) => sum + processorMsOf(pid), 0);
    this.#share.use(Math.max(0, used - this.#chargedMs));
    this.#chargedMs = Math.max(used, this.#chargedMs);
    this.#lowerWhereSpent();
  }

  /** The process has ended, for any reason. */
  close(): void {
    clearInterval(this.#timer);
    if (process.platform === 'linux' && this.#lookedAt === 0) this.#share.use(unseenMs);
  }

  #lowerWhereSpent(): void {
    if (this.#isLow || !this.#share.isSpent) return;
    const pids = this.#pids();
    // All are in one session. The system refuses if another session's priority was changed just before.
    this.#isLow = pids.length > 0 && isSessionLowered(pids[0] ?? 0);
    const isLowered = pids.map((pid) => lowerPriority(pid));
    if (isLowered.includes(false)) this.#onRefused();
  }

  #pids(): readonly number[] {
    const { pid, exitCode, signalCode } = this.#child;
    const isOver = pid === undefined || exitCode !== null || signalCode !== null;
    return isOver || process.platform !== 'linux' ? [] : processesFrom(pid);
  }
}

/** False if the system refuses: a system call filter such as systemd's `@resources` does so. */
function lowerPriority(pid: number): boolean {
  try {
    setPriority(pid, lowPriority);
    return true;
  } catch (error) {
    // It may have ended meanwhile.
    return errno(error) === 'ESRCH';
  }
}

/** Tests with an idle process. */
export async function canLowerPriority(): Promise<boolean> {
  const child = spawn('/bin/cat', [], { stdio: ['pipe', 'ignore', 'ignore'] });
  try {
    await once(child, 'spawn');
    return child.pid !== undefined && lowerPriority(child.pid);
  } finally {
    child.kill('SIGKILL');
  }
}

/** With autogroup scheduling, a thread's priority counts only within its own session. False means try again. */
function isSessionLowered(pid: number): boolean {
  try {
    writeFileSync(`/proc/${pid}/autogroup`, String(lowPriority));
    return true;
  } catch (error) {
    return errno(error) !== 'EAGAIN';
  }
}

/** Node's process functions report it in `info`. */
function errno(error: unknown): unknown {
  if (!(error instanceof Error)) return undefined;
  const { info } = error as { readonly info?: { readonly code?: unknown } };
  return info?.code ?? ('code' in error ? error.code : undefined);
}

/** The process and all its descendants. */
function processesFrom(pid: number): readonly number[] {
  const children = attempt(() => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')) ?? '';
  return [pid, ...(children.match(/\d+/g) ?? []).flatMap((child) => processesFrom(Number(child)))];
}

/** The processor time of all its threads so far. */
function processorMsOf(pid: number): number {
  const line = attempt(() => readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? '';
  // The name before it may contain any characters.
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

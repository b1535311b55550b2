/** What a tenant's code computes beyond its share, it computes behind the vault: at a lower priority. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';

/** A nice value: a thirtieth of a processor of which the vault wants all. */
export const lowPriority = 15;

/** How much of a core a tenant may use at the priority of the vault, in the long run and at once. */
const shareOfCore = 0.1;
const shareMsMax = 3_000;

/** Between two looks at a process. */
const lookMs = 100;
/** What a process counts for that ended before anybody looked: about what it takes to start one. */
const unseenMs = 200;
/** Of what `/proc` counts processor time in, the same on every machine. */
const msPerTick = 10;

/** The processor time of a tenant's processes, of which a part is forgiven as time passes. */
export class ProcessorShare {
  #usedMs = 0;
  #at = performance.now();
  readonly #onSpent: () => void;

  /** @param onSpent is called each time that the share is used up. */
  constructor(onSpent: () => void = () => undefined) {
    this.#onSpent = onSpent;
  }

  use(ms: number): void {
    const wasSpent = this.isSpent;
    this.#usedMs = this.#unforgivenMs + ms;
    this.#at = performance.now();
    if (this.isSpent && !wasSpent) this.#onSpent();
  }

  get isSpent(): boolean {
    return this.#unforgivenMs > shareMsMax;
  }

  get isUnused(): boolean {
    return this.#unforgivenMs === 0;
  }

  get #unforgivenMs(): number {
    return Math.max(0, this.#usedMs - (performance.now() - this.#at) * shareOfCore);
  }
}

/** A child as the watch sees it; its number may belong to somebody else once it has ended. */
interface WatchedChild {
  readonly pid?: number | undefined;
  readonly exitCode: number | null;
  readonly signalCode: string | null;
}

/** Charges what a process and those below it use to their tenant. Elsewhere than on Linux it does nothing. */
export class ProcessorWatch {
  readonly #child: WatchedChild;
  readonly #share: ProcessorShare;
  #chargedMs = 0;
  #lookedAt = 0;
  readonly #onRefused: () => void;
  #isLow = false;
  #timer: NodeJS.Timeout | undefined;

  /**
   * Where the share is spent already the process starts at the lower priority.
   *
   * @param onRefused is called when the system does not let the vault lower a priority.
   */
  constructor(child: WatchedChild, share: ProcessorShare, onRefused: () => void = () => undefined) {
    this.#child = child;
    this.#share = share;
    this.#onRefused = onRefused;
    this.#lowerWhereSpent();
  }

  /** For as long as a call runs. */
  begin(): void {
    this.#timer = setInterval(() => this.look(), lookMs).unref();
  }

  end(): void {
    clearInterval(this.#timer);
    if (performance.now() - this.#lookedAt >= lookMs) this.look();
  }

  /** Before the process is killed as well: nobody can look afterwards. */
  look(): void {
    const pids = this.#pids();
    if (pids.length === 0) return;
    this.#lookedAt = performance.now();
    const used = pids.reduce((sum, pid) => sum + processorMsOf(pid), 0);
    this.#share.use(Math.max(0, used - this.#chargedMs));
    this.#chargedMs = Math.max(used, this.#chargedMs);
    this.#lowerWhereSpent();
  }

  /** The process has ended, by whatever. */
  close(): void {
    clearInterval(this.#timer);
    if (process.platform === 'linux' && this.#lookedAt === 0) this.#share.use(unseenMs);
  }

  #lowerWhereSpent(): void {
    if (this.#isLow || !this.#share.isSpent) return;
    const pids = this.#pids();
    // All are of one session, which is refused where another was changed just now.
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

/** False where the system refuses it: a filter of system calls does so, as systemd's `@resources`. */
function lowerPriority(pid: number): boolean {
  try {
    setPriority(pid, lowPriority);
    return true;
  } catch (error) {
    // It may have ended meanwhile.
    return errno(error) === 'ESRCH';
  }
}

/** Tried with a process that does nothing. */
export async function canLowerPriority(): Promise<boolean> {
  const child = spawn('/bin/cat', [], { stdio: ['pipe', 'ignore', 'ignore'] });
  try {
    await once(child, 'spawn');
    return child.pid !== undefined && lowerPriority(child.pid);
  } finally {
    child.kill('SIGKILL');
  }
}

/** Where sessions share the processor, the priority of a thread counts only within its own. False to try again. */
function isSessionLowered(pid: number): boolean {
  try {
    writeFileSync(`/proc/${pid}/autogroup`, String(lowPriority));
    return true;
  } catch (error) {
    return errno(error) !== 'EAGAIN';
  }
}

/** Node's own functions of processes say it in `info`. */
function errno(error: unknown): unknown {
  if (!(error instanceof Error)) return undefined;
  const { info } = error as { readonly info?: { readonly code?: unknown } };
  return info?.code ?? ('code' in error ? error.code : undefined);
}

/** The process itself and all below it. */
function processesFrom(pid: number): readonly number[] {
  const children = attempt(() => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')) ?? '';
  return [pid, ...(children.match(/\d+/g) ?? []).flatMap((child) => processesFrom(Number(child)))];
}

/** By all its threads, so far. */
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

/**
 * Masks strings for many callers. Work of at most a few milliseconds runs immediately. All other work runs in
 * separate threads, because a search blocks its thread.
 */

import { VaultError } from '../../base/errors.ts';
import { ExpressionError } from '../../expressions/evaluation/error.ts';
import { type Mask, maskAtOnce, maskWorkMax } from './mask.ts';
import { MaskQueue, type MaskQueueLimits } from './mask-queue.ts';
import { type MaskThread, startMaskThread } from './mask-thread.ts';

export interface MaskOptions {
  /** The tenant. Its masks wait for each other, not for those of other tenants. */
  readonly partition: string;
  /** Aborted if the caller disconnects. */
  readonly signal?: AbortSignal | undefined;
}

export interface Masking {
  /**
   * Returns the string with every match masked, see {@link maskAtOnce}.
   *
   * @throws ExpressionError if the mask is too much work for this string, VaultError `overloaded` if too many wait,
   * the reason of the signal if that is aborted.
   */
  maskText(text: string, mask: Mask, options: MaskOptions): Promise<string>;
  /** Ends all threads. Unfinished masks fail. */
  close(): Promise<void>;
}

interface MaskingLimits extends MaskQueueLimits {
  /** The work limit for masking immediately: up to 2 ms as measured, ten times as much while the code is cold. */
  readonly workAtOnceMax: number;
  /** Two, so that one tenant, limited to one at a time, leaves one to the others. */
  readonly threadsMax: number;
  readonly maskMsMax: number;
  /** How long a thread waits for another mask before it ends. */
  readonly idleMs: number;
}

export const maskingLimits: MaskingLimits = {
  workAtOnceMax: 50_000,
  threadsMax: 2,
  maskMsMax: 5_000,
  idleMs: 10_000,
  ofAll: { count: 1_000, characters: 50_000_000 },
  ofPartition: { count: 100, characters: 10_000_000 },
};

interface MaskJob extends PromiseWithResolvers<string> {
  readonly partition: string;
  readonly text: string;
  readonly mask: Mask;
}

export function createMasking(given: Partial<MaskingLimits> = {}): Masking {
  const limits = { ...maskingLimits, ...given };
  const queue = new MaskQueue<MaskJob>(limits);
  const threads = new Set<MaskThread>();
  const idle = new Map<MaskThread, NodeJS.Timeout>();
  let isClosed = false;

  function start(): MaskThread {
    const onEnd = () => {
      threads.delete(thread);
      clearTimeout(idle.get(thread));
      idle.delete(thread);
      proceed();
    };
    const thread = startMaskThread({ maskMsMax: limits.maskMsMax, onEnd });
    threads.add(thread);
    return thread;
  }

  function proceed(): void {
    while (idle.size > 0 || threads.size < limits.threadsMax) {
      const job = queue.take();
      if (job === undefined) return;
      void run(job);
    }
  }

  async function run(job: MaskJob): Promise<void> {
    const { partition, text, mask, resolve, reject } = job;
    let thread: MaskThread | undefined;
    try {
      if (isClosed) throw stopping();
      thread = idleThread() ?? start();
      const masked = await thread.mask({ ...mask, text, pattern: mask.pattern.pattern() });
      if (masked === undefined) reject(tooMuchWork());
      else resolve(masked);
    } catch (error) {
      reject(isClosed ? stopping() : error);
    }
    queue.release(partition);
    if (thread !== undefined && threads.has(thread)) rest(thread);
    proceed();
  }

  /** Prefers the thread that was used last, so that the others can time out. */
  function idleThread(): MaskThread | undefined {
    const [thread, timer] = [...idle].at(-1) ?? [];
    if (thread === undefined) return undefined;
    clearTimeout(timer);
    idle.delete(thread);
    return thread;
  }

  function rest(thread: MaskThread): void {
    const timer = setTimeout(() => {
      idle.delete(thread);
      void thread.end();
    }, limits.idleMs);
    idle.set(thread, timer.unref());
  }

  async function inThread(text: string, mask: Mask, options: MaskOptions): Promise<string> {
    const { partition, signal } = options;
    signal?.throwIfAborted();
    if (isClosed) throw stopping();
    const job: MaskJob = { ...Promise.withResolvers<string>(), partition, text, mask };
    if (!queue.add(job)) throw tooManyWaiting();
    const leave = () => {
      queue.remove(job);
      // A thread finishes its current mask, within its limits; starting another thread would take longer.
      job.reject(signal?.reason);
    };
    signal?.addEventListener('abort', leave, { once: true });
    try {
      proceed();
      return await job.promise;
    } finally {
      signal?.removeEventListener('abort', leave);
    }
  }

  return {
    maskText: async (text, mask, options) => {
      if (text.length * mask.pattern.programSize() <= limits.workAtOnceMax) {
        const masked = maskAtOnce(text, mask, limits.workAtOnceMax);
        if (masked !== undefined) return masked;
      }
      return inThread(text, mask, options);
    },
    close: async () => {
      isClosed = true;
      // Waiting jobs fail as soon as a thread ends, see `run`.
      await Promise.all([...threads].map((thread) => thread.end()));
    },
  };
}

function tooMuchWork(): ExpressionError {
  return new ExpressionError(`a mask needs more than ${maskWorkMax} units of work`);
}

function tooManyWaiting(): VaultError {
  return new VaultError('overloaded', {
    public: 'Too many responses wait to be masked.',
    internal: 'the queue of masks is full',
  });
}

function stopping(): VaultError {
  return new VaultError('unavailable', { public: 'The vault is being stopped.' });
}

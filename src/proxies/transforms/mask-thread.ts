/** This side of a thread that masks: its start, one text at a time, and its end. */
import { Worker } from 'node:worker_threads';
import { reasonOf, VaultError } from '../../base/errors.ts';
import { entryPointUrl } from '../../base/installation/entry-points.ts';
import { createThreadRpc } from '../../base/thread-rpc.ts';
import { ExpressionError } from '../../expressions/evaluation/error.ts';

export interface TextToMask {
  readonly text: string;
  readonly pattern: string;
  readonly replacement: string;
}

/** What comes back: `undefined` for a mask that needs more work than it may take. */
export type MaskedText = string | undefined;

/** What the thread is asked for. */
export interface MaskCalls {
  mask(given: TextToMask): MaskedText;
}

export interface MaskThread {
  /**
   * Only for one text at a time. A mask that takes too long ends the thread and gives `undefined`.
   *
   * @throws ExpressionError when the mask needs too much memory, VaultError when the thread ended otherwise.
   */
  mask(given: TextToMask): Promise<MaskedText>;
  /** Resolves when the thread is no more. */
  end(): Promise<void>;
}

export interface MaskThreadOptions {
  /** What a mask may take. Its limit of work is reached long before, unless the machine is overloaded. */
  readonly maskMsMax: number;
  /** The thread has ended, for whatever reason. It is called before the mask under way fails. */
  readonly onEnd: () => void;
}

/** By measurement 32 MB suffice for the largest texts that can be masked; some more are for compiled patterns. */
const resourceLimits = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16 };

export function startMaskThread({ maskMsMax, onEnd }: MaskThreadOptions): MaskThread {
  // The environment has secrets, and the thread no use for them.
  const worker = new Worker(entryPointUrl('proxies/transforms/mask-worker'), {
    name: 'masks',
    env: {},
    resourceLimits,
  });
  const rpc = createThreadRpc<MaskCalls, Record<never, never>>(worker, {});
  let failure: unknown;
  let isLate = false;
  worker.on('error', (error) => {
    failure = error;
  });
  worker.on('exit', () => {
    onEnd();
    rpc.end(failed(failure));
  });

  async function mask(given: TextToMask): Promise<MaskedText> {
    const timer = setTimeout(() => {
      isLate = true;
      void worker.terminate();
    }, maskMsMax);
    worker.ref();
    try {
      return await rpc.call('mask', given);
    } catch (error) {
      if (isLate) return undefined;
      throw error;
    } finally {
      clearTimeout(timer);
      // A thread that waits keeps no process alive.
      worker.unref();
    }
  }

  return {
    mask,
    end: async () => {
      await worker.terminate();
    },
  };
}

function failed(failure: unknown): Error {
  if ((failure as { code?: unknown } | undefined)?.code === 'ERR_WORKER_OUT_OF_MEMORY') {
    return new ExpressionError('a mask needs more memory than it may use');
  }
  return new VaultError('internal', {
    public: 'The vault failed to mask a response.',
    internal: `a mask thread ended: ${failure === undefined ? 'it was ended' : reasonOf(failure)}`,
    cause: failure,
  });
}

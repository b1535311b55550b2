/** The client side of a mask thread: starts it, sends one string at a time, and ends it. */
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

/** The result: `undefined` if the mask exceeds its limit of work. */
export type MaskedText = string | undefined;

/** The requests to the thread. */
export interface MaskCalls {
  mask(given: TextToMask): MaskedText;
}

export interface MaskThread {
  /**
   * Accepts only one string at a time. A mask that takes too long ends the thread and resolves to `undefined`.
   *
   * @throws ExpressionError if the mask needs too much memory, VaultError if the thread ended otherwise.
   */
  mask(given: TextToMask): Promise<MaskedText>;
  /** Resolves when the thread has ended. */
  end(): Promise<void>;
}

export interface MaskThreadOptions {
  /** The time limit of a mask. The limit of work is reached much earlier, unless the machine is overloaded. */
  readonly maskMsMax: number;
  /** Called when the thread has ended, for any reason, before the current mask fails. */
  readonly onEnd: () => void;
}

/** 32 MB suffice for the largest strings that can be masked, as measured; the rest is for compiled patterns. */
const resourceLimits = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16 };

export function startMaskThread({ maskMsMax, onEnd }: MaskThreadOptions): MaskThread {
  // The environment contains secrets that the thread does not need.
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
      // An idle thread does not keep the process alive.
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

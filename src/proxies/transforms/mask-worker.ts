/** The code of a thread that masks strings, one after another. */
import assert from 'node:assert/strict';
import { parentPort } from 'node:worker_threads';
import type { RE2JS } from 're2js';
import { LruCache } from '../../base/lru-cache.ts';
import { createThreadRpc } from '../../base/thread-rpc.ts';
import { compilePattern, maskAtOnce } from './mask.ts';
import type { MaskCalls } from './mask-thread.ts';

/** How many compiled patterns are cached, see {@link LruCache}: each may take up to 8 MB while it is used. */
const patternsKeptMax = 5_000;

function run(): void {
  assert(parentPort, 'a thread has a parent');
  const patterns = new LruCache<RE2JS>(patternsKeptMax);

  function compiled(text: string): RE2JS {
    const known = patterns.get(text);
    if (known !== undefined) return known;
    const pattern = compilePattern(text);
    patterns.set(text, pattern);
    return pattern;
  }

  createThreadRpc<Record<never, never>, MaskCalls>(parentPort, {
    mask: ({ text, pattern, replacement }) =>
      maskAtOnce(text, { pattern: compiled(pattern), replacement }),
  });
}

run();

/** Sandboxes as the vault opens them on this machine. */
import assert from 'node:assert/strict';
import { openSandbox } from '../../src/sandbox/open.ts';
import type { PoolLimits } from '../../src/sandbox/pool.ts';
import { findIsolation } from '../../src/sandbox/probe.ts';
import type { Sandbox } from '../../src/sandbox/sandbox.ts';

const found = await findIsolation();
assert(found, 'this machine permits some isolation');

/** The strongest way that this machine permits; it is looked for once in each process of tests. */
export const isolation = found;

export function openTestSandbox(bounds: Partial<PoolLimits> = {}): Sandbox {
  return openSandbox(isolation, { bounds });
}

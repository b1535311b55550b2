/** Sandboxes as the vault opens them on this machine. */
import assert from 'node:assert/strict';
import { openSandbox, type SandboxOptions } from '../../src/reactors/sandbox/open.ts';
import type { PoolLimits } from '../../src/reactors/sandbox/pool.ts';
import type { Sandbox } from '../../src/reactors/sandbox/sandbox.ts';
import { findIsolationOnce } from './isolation.ts';

const found = await findIsolationOnce();
assert(found, 'this machine permits some isolation');

/** The strongest way that this machine permits. */
export const isolation = found;

export function openTestSandbox(
  bounds: Partial<PoolLimits> = {},
  options: SandboxOptions = {},
): Sandbox {
  return openSandbox(isolation, { bounds, ...options });
}

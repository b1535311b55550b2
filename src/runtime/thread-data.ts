/** The data with which the threads of a process start. */
import assert from 'node:assert/strict';
import { systemClock } from '../base/clock.ts';
import { SharedClock } from '../base/shared-clock.ts';
import type { Config } from './config/config.ts';
import type { ThreadData } from './messages.ts';
import type { Process } from './process.ts';

export function threadDataOf(
  { vaultKeys, clock, store, isolation, budgetMemory }: Process,
  config: Config,
  requestTimeoutMs?: number,
): ThreadData {
  const memory = clock instanceof SharedClock ? clock.memory : undefined;
  assert(memory || clock === systemClock, 'threads share no other clock');
  // What only the process needs stays there: what opens the vault, and what does not cross.
  const {
    rootKey: _key,
    rootKeyFile: _file,
    bootstrap: _bootstrap,
    checkpointSink: _sink,
    ...rest
  } = config;
  const epochs = store.epochs.memory;
  return {
    config: rest,
    vaultName: vaultKeys.name,
    isolation,
    epochs,
    clock: memory,
    requestTimeoutMs,
    budget: { memory: budgetMemory, thread: 0 },
  };
}

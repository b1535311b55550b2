/** Promises that can be taken back for as long as it takes to measure what they cost: one row each. */

/** What stands for the product in the command that starts a vault without the promise of that name. */
export const promises = {
  'the audit log': '--import ./bench/exchange-store.ts bin/strongroom.js serve',
  // Not waiting for the disk is a matter of where the store is: see `durable` in storage.ts.
  fsync: 'bin/strongroom.js serve',
} as const;

export type PromiseName = keyof typeof promises;

/** Promises that can be taken back for as long as it takes to measure what they cost: one row each. */

/** What is started in place of the product where the vault is to break the promise of that name. */
export const promises = {
  'the audit log': '--import ./bench/exchange-store.ts bin/strongroom.js',
  // Not waiting for the disk is a matter of where the store is: see `durable` in storage.ts.
  fsync: undefined,
} as const;

export type PromiseName = keyof typeof promises;

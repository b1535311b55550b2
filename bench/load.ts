/** Load generators by name; each runs in a process of its own. */
import { useAutocannon } from './autocannon.ts';
import type { Job, LoadResult } from './job.ts';
import { useWrk, wrkPath } from './wrk.ts';

export type ApplyLoad = (job: Job) => Promise<LoadResult>;

export const generators: Readonly<Record<string, ApplyLoad>> = {
  wrk: useWrk,
  autocannon: useAutocannon,
};

export const defaultGenerator = wrkPath === undefined ? 'autocannon' : 'wrk';

/** The generator of that name. */
export function loadBy(name: string): ApplyLoad {
  const load = generators[name];
  if (load === undefined) throw new Error(`there is no load generator ${name}`);
  return load;
}

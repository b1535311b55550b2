/** How code is kept apart on this machine, found out once in a run: it takes a third of the time of a start. */
import { findIsolation } from '../../src/reactors/sandbox/probe.ts';

/** Where the runner put what it found, as JSON, so that not every test file finds it out again. */
export const isolationVariable = 'TEST_ISOLATION';

const given = process.env[isolationVariable];
const found = new Map<string | undefined, ReturnType<typeof findIsolation>>();
if (given !== undefined) found.set(undefined, Promise.resolve(JSON.parse(given) ?? undefined));

/** The same as {@link findIsolation}; what a machine permits does not change while tests run. */
export const findIsolationOnce: typeof findIsolation = (choice) => {
  const isolation = found.get(choice) ?? findIsolation(choice);
  found.set(choice, isolation);
  return isolation;
};

/** The settings of a distributed database. Its URL is read in `config.ts`. */
import { wrongVariable } from './problems.ts';
import { oneOf } from './values.ts';
import type { ReadVariable } from './variables.ts';

/** @returns whether the first start distributes the tables. */
export function readDistribution(read: ReadVariable): boolean {
  const variable = 'STRONGROOM_DATABASE_DISTRIBUTE';
  const isAsked = oneOf(variable, read('DATABASE_DISTRIBUTE') ?? 'off', ['off', 'citus']) !== 'off';
  if (!isAsked || read('DATABASE_URL') !== undefined) return isAsked;
  const advice = 'set STRONGROOM_DATABASE_URL to that of Citus, or leave this variable out';
  throw wrongVariable(
    variable,
    `is for PostgreSQL, and the embedded database has one server: ${advice}`,
  );
}

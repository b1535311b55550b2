/** Numbers of the code that no module exports. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './source.ts';

const units: Readonly<Record<string, number>> = {
  second: 1000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
};

/** The value of a constant that is a number, or a product of numbers and units of time. */
export function constantIn(path: string, name: string): number {
  const source = readFileSync(join(root, path), 'utf8');
  const text = new RegExp(`^(?:export )?const ${name} = ([^;]+);`, 'm').exec(source)?.[1];
  if (text === undefined) throw new Error(`${path} has no constant ${name}`);
  return text
    .split('*')
    .map((factor) => units[factor.trim()] ?? Number(factor.trim().replaceAll('_', '')))
    .reduce((product, factor) => product * factor, 1);
}

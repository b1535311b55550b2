/** What is done to the packages of this repository in tests: checking types, formatting, bundling. */
import { spawnSync } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { buildPackage } from '../../scripts/build-client.ts';
import { root } from './source.ts';

const bin = (name: string) => join(root, 'node_modules', '.bin', name);

/** TypeScript as Biome formats it here. */
export function formatted(text: string): string {
  const arguments_ = ['format', '--stdin-file-path=packages/client/src/wire.ts'];
  const { stdout, stderr, status } = spawnSync(bin('biome'), arguments_, {
    cwd: root,
    input: text,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(stderr);
  return stdout;
}

export interface TypeComplaint {
  readonly file: string;
  readonly line: number;
  readonly message: string;
}

/** What tsc says of these files, under the strictest options that a user of a package may have. */
export function typeErrors(
  files: readonly string[],
  options: readonly string[] = [],
): TypeComplaint[] {
  const strictest = [
    ...['--noEmit', '--strict', '--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess'],
    '--allowImportingTsExtensions',
    ...['--target', 'es2022', '--lib', 'es2022,dom,dom.iterable', '--module', 'nodenext'],
    ...['--types', '', '--pretty', 'false', '--ignoreConfig'],
  ];
  const { stdout } = spawnSync(bin('tsc'), [...strictest, ...options, ...files], {
    cwd: root,
    encoding: 'utf8',
  });
  return [...stdout.matchAll(/^(\S[^\n]*?)\((\d+),\d+\): error (\w+: [^\n]*)/gm)].map(
    ([, file = '', line, message = '']) => ({ file, line: Number(line), message }),
  );
}

/** As `npm install` of the built package does. */
export async function installClient(directory: string): Promise<void> {
  const target = join(directory, 'node_modules', '@strongroom', 'client');
  await buildPackage('client', join(target, 'dist'));
  cpSync(join(root, 'packages', 'client', 'package.json'), join(target, 'package.json'));
}

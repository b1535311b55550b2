/** The command as the published package has it, among other packages, by which it knows what it is. */
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { bundle } from '../../scripts/bundle.ts';
import { entryPoints } from '../../src/base/installation/entry-points.ts';

const root = join(import.meta.dirname, '..', '..');

export interface PackedProgram {
  /** The path of the command. */
  readonly command: string;
  /** The URLs of modules that are started, by those of their sources. */
  readonly started: Readonly<Record<string, string>>;
}

export async function packProgram(): Promise<PackedProgram> {
  const directory = await pack();
  const url = (...path: readonly string[]) => pathToFileURL(join(...path)).href;
  return {
    command: join(directory, 'bin', 'strongroom.js'),
    started: Object.fromEntries(
      entryPoints.map((name) => [
        url(root, 'src', `${name}.ts`),
        url(directory, 'dist', `${name}.js`),
      ]),
    ),
  };
}

/**
 * The same with more entry points.
 * @returns a directory that goes with this process.
 */
export async function pack(more: readonly string[] = []): Promise<string> {
  const cache = join(root, 'node_modules', '.cache');
  mkdirSync(cache, { recursive: true });
  const directory = mkdtempSync(join(cache, 'strongroom-package-'));
  process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
  // As an installation, which every user may start.
  chmodSync(directory, 0o755);
  await bundle(join(directory, 'dist'), more);
  for (const folder of ['bin', 'docs']) mkdirSync(join(directory, folder), { recursive: true });
  const others = ['package.json', 'bin/strongroom.js', 'bin/healthcheck.js', 'docs/openapi.json'];
  for (const file of others) copyFileSync(join(root, file), join(directory, file));
  return directory;
}

/** The largest libraries as a few files: reading eight hundred is a third of what a test file takes to load. */
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { leanHttpModule } from '../../scripts/node-http.ts';

const root = join(import.meta.dirname, '..', '..');

/** As the sources import them; what two of them share is one file, and so loaded once. */
const names = ['jose', 'kysely', 'typebox', 'typebox/schema', 'typebox/system'];
const lean = 'node:http';

const fileOf = (name: string) => name.replace(/[/:]/, '-');

/**
 * Bundles them into a directory, where a run that reads them meanwhile is not disturbed.
 *
 * @returns their URLs, by the names of the libraries.
 */
export async function bundlePackages(directory: string): Promise<Readonly<Record<string, string>>> {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: names.map((name) => ({ in: name, out: fileOf(name) })),
    outdir: directory,
    outExtension: { '.js': '.mjs' },
    splitting: true,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    legalComments: 'none',
    logLevel: 'warning',
    write: false,
  });
  mkdirSync(directory, { recursive: true });
  const files = [
    ...outputFiles,
    { path: join(directory, `${fileOf(lean)}.mjs`), contents: leanHttpModule() },
  ];
  for (const { path, contents } of files) {
    const unfinished = `${path}.${process.pid}`;
    writeFileSync(unfinished, contents);
    renameSync(unfinished, path);
  }
  const url = (name: string) => pathToFileURL(join(directory, `${fileOf(name)}.mjs`)).href;
  return Object.fromEntries([...names, lean].map((name) => [name, url(name)]));
}

/**
 * Bundles what browsers load. `npm run build` writes the files next to the bundled server; a server that runs from its
 * sources asks for them at the first request for one.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, parse } from 'node:path';
import { build, type Metafile } from 'esbuild';
import { type BuiltFile, builtFile, manifestName } from '../src/browser/built-file.ts';
import { type Bundle, bundles } from '../src/browser/bundles.ts';

const root = join(import.meta.dirname, '..');

/** Browsers that get security updates (docs/fields-reference.md). */
const target = ['chrome109', 'firefox115', 'safari16.4'];

export interface BrowserBuild {
  readonly files: readonly BuiltFile[];
  /** What is in which file. */
  readonly inputs: Metafile['inputs'];
}

/** @param from the bundles to build, with folders below `directory`. */
export async function buildBrowserFiles(
  from: readonly Bundle[] = bundles,
  directory = root,
): Promise<BrowserBuild> {
  const built = await Promise.all(from.map((bundle) => buildOne(bundle, directory)));
  return {
    files: built.flatMap(({ files }) => files),
    inputs: Object.assign({}, ...built.map(({ inputs }) => inputs)),
  };
}

async function buildOne(
  { name, folder, entryPoints }: Bundle,
  directory: string,
): Promise<BrowserBuild> {
  const { outputFiles, metafile } = await build({
    absWorkingDir: directory,
    entryPoints: entryPoints.map((path) => ({ in: join(folder, path), out: parse(path).name })),
    outdir: name,
    write: false,
    bundle: true,
    minify: true,
    format: 'iife',
    platform: 'browser',
    target,
    charset: 'utf8',
    // What a page shows besides scripts and styles is inside of them, so that nothing else has to be fetched.
    loader: { '.svg': 'dataurl', '.png': 'dataurl', '.woff2': 'dataurl' },
    legalComments: 'none',
    logLevel: 'silent',
    metafile: true,
  });
  const files = outputFiles.map(({ path, contents }) =>
    builtFile(`${name}/${parse(path).base}`, contents),
  );
  return { files, inputs: metafile.inputs };
}

/** @param directory of the bundled server. */
export async function writeBrowserFiles(directory: string): Promise<Metafile['inputs']> {
  const { files, inputs } = await buildBrowserFiles();
  const folder = join(directory, 'browser');
  for (const { name, contents } of files) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), contents);
  }
  const manifest = files.map(({ name, integrity }) => ({ name, integrity }));
  writeFileSync(join(folder, manifestName), `${JSON.stringify(manifest, undefined, 2)}\n`);
  return inputs;
}

/**
 * Bundles the sources for the published package, into `dist` or the folder that is named: some hundred files in place
 * of two thousand, libraries included, because finding and reading them is most of what a start takes.
 */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build, type Metafile, type Plugin } from 'esbuild';
import { entryPoints } from '../src/base/installation/entry-points.ts';
import { writeBrowserFiles } from './browser-files.ts';
import { leanHttpModule } from './node-http.ts';

const root = join(import.meta.dirname, '..');

/** Found where they are installed: one looks for files of its own, the other loads a file of WebAssembly. */
const installed = ['pg', 'quickjs-wasi'];

/** Libraries in the older form of modules call it. */
const banner = `import { createRequire as createBundledRequire } from 'node:module';
const require = createBundledRequire(import.meta.url);`;

const leanHttp: Plugin = {
  name: 'lean-http',
  setup(build) {
    const namespace = 'lean-http';
    build.onResolve({ filter: /^(?:node:)?http$/ }, ({ kind }) =>
      kind === 'import-statement' ? { path: 'node-http', namespace } : undefined,
    );
    build.onLoad({ filter: /.*/, namespace }, () => ({ contents: leanHttpModule() }));
  },
};

/**
 * @param more modules that shall be files as well, by their paths below the sources.
 * @returns what is in which file.
 */
export async function bundle(directory: string, more: readonly string[] = []): Promise<Metafile> {
  rmSync(directory, { recursive: true, force: true });
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: [...entryPoints, ...more].map((name) => ({ in: `src/${name}.ts`, out: name })),
    outdir: directory,
    // What entry points share, two folders deep, like the module that says where they are.
    chunkNames: 'base/shared/[name]-[hash]',
    splitting: true,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    external: installed,
    plugins: [leanHttp],
    banner: { js: banner },
    legalComments: 'none',
    logLevel: 'warning',
    metafile: true,
  });
  const inputs = await writeBrowserFiles(directory);
  writeFileSync(join(directory, 'LICENSES.txt'), licenses(Object.keys(inputs)));
  return metafile;
}

/**
 * The licenses of all production dependencies, and of what is in the files for browsers, which ask to be passed on
 * with their code.
 */
function licenses(inBrowsers: readonly string[]): string {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  return Object.entries<LockedPackage>(packages)
    .filter(([folder, { dev, optional, devOptional }]) => {
      if (!folder.startsWith('node_modules/')) return false;
      const isProduction = !dev && !optional && !devOptional;
      return isProduction || inBrowsers.some((path) => path.startsWith(`${folder}/`));
    })
    .map(([folder]) => folder)
    .sort()
    .map(licenseOf)
    .join(`\n\n${'-'.repeat(80)}\n\n`);
}

interface LockedPackage {
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly devOptional?: boolean;
}

function licenseOf(folder: string): string {
  const path = join(root, folder);
  const { name, version, license } = JSON.parse(readFileSync(join(path, 'package.json'), 'utf8'));
  const files = readdirSync(path).filter((file) => /^(?:licen[cs]e|notice)/i.test(file));
  const texts = files.map((file) => readFileSync(join(path, file), 'utf8').trim());
  return [`${name} ${version}: ${license}`, ...texts].join('\n\n');
}

if (import.meta.main) await bundle(process.argv[2] ?? join(root, 'dist'));

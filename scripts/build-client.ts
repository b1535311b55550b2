/** Builds the packages for publication: modules by esbuild, and their declarations by tsc. `npm run build:client`. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';

const root = join(import.meta.dirname, '..');
/** The modules that the package exports. */
export const clientModules = ['client', 'verify'];

/** By the package. */
const modules = { client: clientModules, fields: ['fields', 'react', 'vue'] } as const;
type PackageName = keyof typeof modules;

const folderOf = (name: PackageName) => join(root, 'packages', name);

/** @param directory is emptied first. */
export async function buildPackage(name: PackageName, directory: string): Promise<void> {
  const folder = folderOf(name);
  rmSync(directory, { recursive: true, force: true });
  await build({
    absWorkingDir: folder,
    entryPoints: modules[name].map((module) => `src/${module}.ts`),
    outdir: directory,
    bundle: true,
    splitting: true,
    // Peer dependencies, which a page has once.
    external: ['react', 'vue'],
    format: 'esm',
    platform: 'neutral',
    target: 'es2022',
    legalComments: 'none',
    logLevel: 'warning',
  });
  const compiler = join(root, 'node_modules', '.bin', 'tsc');
  const declared = spawnSync(
    compiler,
    [
      '-p',
      folder,
      '--noEmit',
      'false',
      '--emitDeclarationOnly',
      '--declaration',
      '--outDir',
      directory,
    ],
    { encoding: 'utf8' },
  );
  if (declared.status !== 0) throw new Error(`tsc: ${declared.stdout}${declared.stderr}`);
  // Declarations import what is next to them by the name that it has there.
  for (const name of globSync('*.d.ts', { cwd: directory })) {
    const file = join(directory, name);
    const text = readFileSync(file, 'utf8');
    writeFileSync(file, text.replace(/(from '\.\/[\w-]+)\.ts'/g, "$1.js'"));
  }
}

if (import.meta.main) {
  const name = process.argv[2] === 'fields' ? 'fields' : 'client';
  await buildPackage(name, join(folderOf(name), 'dist'));
  copyFileSync(join(root, 'LICENSE'), join(folderOf(name), 'LICENSE'));
}

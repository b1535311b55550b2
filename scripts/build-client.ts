/** Builds `packages/client` for publication: modules by esbuild, and their declarations by tsc. `npm run build:client`. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';

const root = join(import.meta.dirname, '..');
const folder = join(root, 'packages', 'client');

/** The modules that the package exports. */
export const clientModules = ['client', 'verify'];

/** @param directory is emptied first. */
export async function buildClient(directory: string): Promise<void> {
  rmSync(directory, { recursive: true, force: true });
  await build({
    absWorkingDir: folder,
    entryPoints: clientModules.map((name) => `src/${name}.ts`),
    outdir: directory,
    bundle: true,
    splitting: true,
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
  await buildClient(join(folder, 'dist'));
  copyFileSync(join(root, 'LICENSE'), join(folder, 'LICENSE'));
}

/** Bundles the scripts of the pages, as the tools of a React or Vue project do. */
import { readFile } from 'node:fs/promises';
import { dirname, join, parse } from 'node:path';
import { build, type Plugin } from 'esbuild';
import { compileScript, parse as parseComponent } from 'vue/compiler-sfc';

const root = join(import.meta.dirname, '..');
const fields = join(root, 'packages', 'fields', 'src');

const vue: Plugin = {
  name: 'vue',
  setup: ({ onLoad }) => {
    onLoad({ filter: /\.vue$/ }, async ({ path }) => {
      const { descriptor } = parseComponent(await readFile(path, 'utf8'), { filename: path });
      const { content } = compileScript(descriptor, { id: 'example', inlineTemplate: true });
      return { contents: content, loader: 'ts', resolveDir: dirname(path) };
    });
  },
};

/** By their names in the shop. */
export async function buildPages(): Promise<ReadonlyMap<string, Uint8Array>> {
  const { outputFiles } = await build({
    absWorkingDir: join(import.meta.dirname, 'pages'),
    entryPoints: ['plain.js', 'checkout.js', 'react.tsx', 'vue.ts'],
    outdir: '.',
    write: false,
    bundle: true,
    format: 'esm',
    jsx: 'automatic',
    plugins: [vue],
    // What `npm install` gives a project of your own.
    alias: {
      '@strongroom/fields': join(fields, 'fields.ts'),
      '@strongroom/fields/react': join(fields, 'react.ts'),
      '@strongroom/fields/vue': join(fields, 'vue.ts'),
    },
    define: {
      'process.env.NODE_ENV': '"production"',
      __VUE_OPTIONS_API__: 'false',
      __VUE_PROD_DEVTOOLS__: 'false',
      __VUE_PROD_HYDRATION_MISMATCH_DETAILS__: 'false',
    },
    logLevel: 'warning',
  });
  return new Map(outputFiles.map(({ path, contents }) => [parse(path).base, contents]));
}

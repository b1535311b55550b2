/** What browsers load from the vault. A new page adds a row; each entry point becomes one file without imports. */

export interface Bundle {
  /** Its files are served at `/assets/<name>/…`. */
  readonly name: string;
  /** Where its entry points are, from the root of the repository. */
  readonly folder: string;
  /** Modules and style sheets, by their paths in the folder. */
  readonly entryPoints: readonly string[];
}

export const bundles: readonly Bundle[] = [
  {
    name: 'fields',
    folder: 'packages/fields/src',
    entryPoints: ['loader.ts', 'frame/frame.ts', 'frame/frame.css'],
  },
  { name: 'console', folder: 'packages/console/src', entryPoints: ['main.tsx', 'style/main.css'] },
  { name: 'editor', folder: 'packages/console/src/editor', entryPoints: ['editor.ts'] },
  {
    name: 'reference',
    folder: 'packages/reference/src',
    entryPoints: ['reference.tsx', 'reference.css'],
  },
];

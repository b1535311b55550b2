/** Which exports nobody uses. */
import { lineAt, type SourceFile } from './source.ts';

const declaration = /^export (?:async )?(?:const|function\*?) (\w+)/gm;

/** Constants and functions of `src` that no other file names. */
export function unusedExports(files: readonly SourceFile[]): string[] {
  const wordsOf = new Map(files.map(({ path, code }) => [path, new Set(code.match(/\w+/g))]));
  const usedOutside = (name: string, home: string) =>
    files.some(({ path }) => path !== home && wordsOf.get(path)?.has(name));
  return files
    .filter(({ path }) => path.startsWith('src/'))
    .flatMap(({ path, code }) =>
      [...code.matchAll(declaration)]
        .filter(([, name = '']) => !usedOutside(name, path))
        .map(({ index, 1: name }) => `${path}:${lineAt(code, index)} exports ${name} to nobody`),
    );
}

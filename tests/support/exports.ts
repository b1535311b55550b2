/** Which exports nobody uses, or tests alone. */
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

/** Constants and functions that neither `src` nor `bin` uses, not even the file that has them. */
export function usedByTestsAlone(files: readonly SourceFile[]): string[] {
  const words = files.flatMap(({ code }) => code.match(/\w+/g) ?? []);
  const times = new Map<string, number>();
  for (const word of words) times.set(word, (times.get(word) ?? 0) + 1);
  return files.flatMap(({ path, code }) =>
    [...code.matchAll(declaration)]
      .filter(([, name = '']) => times.get(name) === 1)
      .map(({ index, 1: name }) => `${path}:${lineAt(code, index)} has ${name} for tests alone`),
  );
}

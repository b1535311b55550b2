/** The checkers behind `tests/tidy.test.ts`. Each gives one sentence per breach, with its place. */
import { importsOf, lineAt, type SourceFile } from './source.ts';

/** By room: a folder of `src`. */
export type Ranks = Readonly<Record<string, number>>;

export function rankBreaches(files: readonly SourceFile[], ranks: Ranks): string[] {
  return files.flatMap((file) => {
    const own = unitOf(file.path);
    const rank = ranks[own];
    if (rank === undefined) return [`${file.path} has no rank: add ${own} to the table`];
    return importsOf(file)
      .filter(({ target }) => target.startsWith('src/') && unitOf(target) !== own)
      .filter(({ target }) => (ranks[unitOf(target)] ?? Infinity) >= rank)
      .map(
        ({ line, target }) => `${file.path}:${line} imports ${target}, which is not below ${own}`,
      );
  });
}

/** The room of a file. */
function unitOf(path: string): string {
  return path.split('/')[1] ?? path;
}

/** `src/tokens/search/filter.ts` lies in `tokens/search`. */
function folderOf(path: string): string {
  return path.slice('src/'.length, Math.max(path.lastIndexOf('/'), 'src/'.length));
}

/** One cycle per folder of `src` that can reach itself, over imports of whatever file in it. */
export function folderCycles(files: readonly SourceFile[]): string[] {
  const edges = new Map<string, Set<string>>();
  for (const file of files) {
    const own = folderOf(file.path);
    const targets = edges.get(own) ?? new Set();
    edges.set(own, targets);
    for (const { target } of importsOf(file)) {
      if (target.startsWith('src/') && folderOf(target) !== own) targets.add(folderOf(target));
    }
  }
  return cyclesOf(edges);
}

/** One cycle per file that can reach itself over relative imports, types included. */
export function importCycles(files: readonly SourceFile[]): string[] {
  return cyclesOf(
    new Map(files.map((file) => [file.path, importsOf(file).map(({ target }) => target)])),
  );
}

function cyclesOf(edges: ReadonlyMap<string, Iterable<string>>): string[] {
  const done = new Set<string>();
  const cycles: string[] = [];
  const visit = (node: string, trail: readonly string[]): void => {
    const start = trail.indexOf(node);
    if (start >= 0) cycles.push([...trail.slice(start), node].join(' → '));
    if (start >= 0 || done.has(node)) return;
    for (const target of edges.get(node) ?? []) visit(target, [...trail, node]);
    done.add(node);
  };
  for (const node of edges.keys()) visit(node, []);
  return cycles;
}

export function columnBreaches(files: readonly SourceFile[], columnsMax: number): string[] {
  return files.flatMap((file) =>
    linesOf(file).flatMap((line, index) =>
      line.length > columnsMax ? [`${file.path}:${index + 1} has ${line.length} columns`] : [],
    ),
  );
}

function linesOf(file: SourceFile): string[] {
  return file.text.trimEnd().split('\n');
}

export interface Ban {
  readonly pattern: RegExp;
  /** `code` leaves out comments and strings; `path` looks at the name of the file alone. */
  readonly in: 'text' | 'code' | 'path';
  readonly allowed?: RegExp;
  readonly instead: string;
}

export function bannedWords(files: readonly SourceFile[], bans: readonly Ban[]): string[] {
  return files.flatMap((file) =>
    bans
      .filter((ban) => ban.allowed?.test(file.path) !== true)
      .flatMap((ban) =>
        [...file[ban.in].matchAll(new RegExp(ban.pattern, `${ban.pattern.flags}g`))].map(
          (match) => {
            const line = ban.in === 'path' ? 1 : lineAt(file[ban.in], match.index);
            return `${file.path}:${line} has “${match[0]}”: ${ban.instead}`;
          },
        ),
      ),
  );
}

/** Where each branded type is declared, and each class of `others`. */
export function brandHomes(
  files: readonly SourceFile[],
  others: readonly string[],
): Map<string, string> {
  const homes = new Map<string, string>();
  const declared = new RegExp(`\\bclass\\s+(${others.join('|')})\\b`, 'g');
  for (const { path, code } of files) {
    for (const match of code.matchAll(/\btype\s+(\w+)(?:<[^=]*>)?\s*=\s*Brand</g)) {
      homes.set(match[1] ?? '', path);
    }
    for (const match of code.matchAll(declared)) homes.set(match[1] ?? '', path);
  }
  return homes;
}

export function castBreaches(files: readonly SourceFile[], others: readonly string[]): string[] {
  const homes = brandHomes(files, others);
  const cast = /\bas\s+(?:readonly\s+)?(\w+)(?:<(\w+))?/g;
  return files.flatMap((file) => {
    const code = file.code.replace(/\b(?:import|export)\b[^;'"`(=]*\bfrom\b/g, (statement) =>
      statement.replace(/[^\n]/g, ' '),
    );
    return [...code.matchAll(cast)].flatMap((match) => {
      const home = homes.get(match[1] ?? '') ?? homes.get(match[2] ?? '');
      if (home === undefined || home === file.path) return [];
      return [`${file.path}:${lineAt(code, match.index)} has “${match[0]}”; only ${home} may`];
    });
  });
}

/** Names under which two files declare a type, an interface or a class, exported or not. */
export function sharedTypeNames(files: readonly SourceFile[]): string[] {
  const declaration =
    /(?<=^|[;{}])\s*(?:export )?(?:abstract )?(?:type (\w+)\s*(?:<[^;=]*>)?\s*=|(?:interface|class) (\w+))/gm;
  const homesOf = new Map<string, Set<string>>();
  for (const { path, code } of files) {
    for (const [, type, other] of code.matchAll(declaration)) {
      const name = type ?? other ?? '';
      homesOf.set(name, (homesOf.get(name) ?? new Set()).add(path));
    }
  }
  return [...homesOf]
    .filter(([, homes]) => homes.size > 1)
    .map(([name, homes]) => `${name} is declared in ${[...homes].join(' and in ')}`);
}

/** The first line, after a shebang, opens a documentation comment that says something. */
export function headless(files: readonly SourceFile[]): string[] {
  const head = /^(?:#![^\n]*\n)?\/\*\*[^\S\n]*(?:\n \* )?[^\w\n*]*\w+\W+\w+/;
  return files
    .filter((file) => !head.test(file.text))
    .map((file) => `${file.path}:1 does not say what the file is`);
}

export interface Place {
  readonly library: RegExp;
  readonly allowed: RegExp;
  /** Single files outside {@link allowed}, each with the reason. */
  readonly exceptions?: Readonly<Record<string, string>>;
}

export function strayImports(files: readonly SourceFile[], places: readonly Place[]): string[] {
  return files.flatMap((file) =>
    importsOf(file).flatMap(({ line, target }) =>
      places
        .filter((place) => place.library.test(target) && !place.allowed.test(file.path))
        .filter((place) => place.exceptions?.[file.path] === undefined)
        .map((place) => `${file.path}:${line} imports ${target}; only ${place.allowed} may`),
    ),
  );
}

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

/** Every runtime dependency stands in `decisions` between backticks; every version is exact. */
export function dependencyBreaches(manifest: Manifest, decisions: string): string[] {
  const undecided = Object.keys(manifest.dependencies ?? {})
    .filter((name) => !decisions.includes(`\`${name}\``))
    .map((name) => `${name} is named by no decision record`);
  const loose = Object.entries({ ...manifest.dependencies, ...manifest.devDependencies })
    .filter(([, version]) => !/^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(version))
    .map(([name, version]) => `${name} has the version range ${version}`);
  return [...undecided, ...loose];
}

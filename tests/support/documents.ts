/** What documents say of the repository, to be compared with it: paths, and counts of packages. */
import { lineAt } from './source.ts';

interface Document {
  readonly path: string;
  readonly text: string;
}

const fenced = /^```.*?^```/gms;
const codeSpan = /`([^`\n]+)`/g;
const fromTop = /^(?:src|tests|bench|docs|bin|scripts)\/[\w./-]*$/;
const fileName = /^[\w-][\w./-]*\.ts$/;

/**
 * Paths in code spans that no file or folder has. One from the top must be there as it is; another
 * `.ts` file may leave out the folders above it: `tokens/create.ts`.
 */
export function stalePaths(documents: readonly Document[], known: readonly string[]): string[] {
  const whole = new Set(known.flatMap(withFolders));
  const ends = new Set(known.flatMap(endsOf));
  const isThere = (name: string) =>
    (fromTop.test(name) ? whole : ends).has(name.replace(/\/$/, ''));
  return documents.flatMap(({ path, text }) => {
    const prose = text.replace(fenced, (block) => block.replace(/[^\n]/g, ' '));
    return [...prose.matchAll(codeSpan)].flatMap(({ index, 1: span = '' }) =>
      span
        .split(' ')
        .filter((word) => fromTop.test(word) || fileName.test(word))
        .filter((word) => !isThere(word))
        .map((word) => `${path}:${lineAt(text, index)} names ${word}, which does not exist`),
    );
  });
}

/** `a/b.ts` and the folders that hold it: `a`. */
function withFolders(path: string): string[] {
  const parts = path.split('/');
  return parts.map((_, at) => parts.slice(0, at + 1).join('/'));
}

/** `a/b/c.ts`, `b/c.ts` and `c.ts`. */
function endsOf(path: string): string[] {
  const parts = path.split('/');
  return parts.map((_, at) => parts.slice(at).join('/'));
}

interface LockedPackage {
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly license?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

export type LockedPackages = Readonly<Record<string, LockedPackage>>;

/** How many packages run in production, in all and by licence. */
export function countPackages(locked: LockedPackages): Readonly<Record<string, number>> {
  const counts: Record<string, number> = { all: 0 };
  for (const [path, { dev, license = 'none' }] of Object.entries(locked)) {
    if (path === '' || dev) continue;
    counts['all'] = (counts['all'] ?? 0) + 1;
    counts[license] = (counts[license] ?? 0) + 1;
  }
  return counts;
}

/** How many packages come along with one, directly or not. */
export function countBrought(locked: LockedPackages, name: string): number {
  const brought = new Set<string>();
  const visit = (one: string) => {
    const { dependencies, optionalDependencies } = locked[`node_modules/${one}`] ?? {};
    for (const next of Object.keys({ ...dependencies, ...optionalDependencies })) {
      if (brought.has(next) || !locked[`node_modules/${next}`]) continue;
      brought.add(next);
      visit(next);
    }
  };
  visit(name);
  return brought.size;
}

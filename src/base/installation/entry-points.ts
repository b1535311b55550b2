/**
 * The modules that are started and not imported. A clone runs its sources; in the published package each of these is
 * a file, and what they share is bundled into others, two folders deep as this one is.
 */
import { dirname } from 'node:path/posix';
import { fileURLToPath } from 'node:url';

/** Their paths below the sources. */
export const entryPoints = [
  'cli/commands',
  'reactors/sandbox/child/main',
  'runtime/delivering-thread',
  'runtime/request-thread',
  'store/sqlite/scan-thread',
  'store/sqlite/writer',
  'proxies/transforms/mask-worker',
] as const;

export type EntryPoint = (typeof entryPoints)[number];

/** The ending of all modules of this installation. */
const extension = import.meta.url.slice(-3);

export function entryPointUrl(name: EntryPoint): URL {
  return new URL(`../../${name}${extension}`, import.meta.url);
}

/** The folders that hold an entry point and all that it imports of ours. */
export function foldersOf(name: EntryPoint): readonly string[] {
  return [dirname(dirname(name)), 'base'].map((folder) =>
    fileURLToPath(new URL(`../../${folder}`, import.meta.url)),
  );
}

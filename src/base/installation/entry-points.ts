/**
 * Modules that are started rather than imported. A clone runs its sources. In the published package each of these
 * modules is a file, and their shared code is bundled into other files, two folders deep like this one.
 */
import { dirname } from 'node:path/posix';
import { fileURLToPath } from 'node:url';

/** Their paths below the sources. */
export const entryPoints = [
  'cli/commands',
  'cli/agent/inside',
  'reactors/sandbox/child/main',
  'runtime/delivering-thread',
  'runtime/request-thread',
  'store/sqlite/scan-thread',
  'store/sqlite/writer',
  'proxies/transforms/mask-worker',
] as const;

export type EntryPoint = (typeof entryPoints)[number];

/** The file extension of all modules of this installation. */
const extension = import.meta.url.slice(-3);

export function entryPointUrl(name: EntryPoint): URL {
  return new URL(`../../${name}${extension}`, import.meta.url);
}

/** The folders that contain an entry point and all of our modules that it imports. */
export function foldersOf(name: EntryPoint): readonly string[] {
  return [dirname(dirname(name)), 'base'].map((folder) =>
    fileURLToPath(new URL(`../../${folder}`, import.meta.url)),
  );
}

/** A folder of the bundled server, with a slash at its end; a clone, which runs its sources, has none. */
export function builtDirectory(name: string): URL | undefined {
  return extension === '.js' ? new URL(`../../${name}/`, import.meta.url) : undefined;
}

/** A module that only a clone has, by its path in the repository. */
export function sourceModule(path: string): string {
  return new URL(`../../../${path}`, import.meta.url).href;
}

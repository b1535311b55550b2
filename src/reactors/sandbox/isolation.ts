/** Isolation of child processes: the methods that a machine may permit, from strong to weak. */
import { existsSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { entryPointUrl, foldersOf } from '../../base/installation/entry-points.ts';
import { manifestPath } from '../../base/installation/manifest.ts';
import * as limits from './limits.ts';
import type { IsolationName } from './sandbox.ts';
import { systemCallFilter } from './system-calls.ts';

/** A command line, to which a prefix may be added. */
type Words = readonly string[];

/** The isolation that an operator may require; `namespaces` also permits `namespaces and user`. */
export const isolationChoices = ['namespaces', 'user', 'limits', 'none'] as const;

export type IsolationChoice = (typeof isolationChoices)[number];

/** Plain data: the thread that determined it sends it to the others. */
export interface Isolation {
  readonly name: IsolationName;
  /** Whether a seccomp filter refuses system calls. */
  readonly isFiltered: boolean;
  /** The command line of the child, which the parent starts without an environment. */
  readonly words: Words;
}

const child = 'reactors/sandbox/child/main';
const folders = foldersOf(child);

/**
 * Every isolation that may be tried on this system, from strong to weak.
 *
 * @param isFiltered whether the machine permits {@link filterCommand}.
 */
export function isolations(isFiltered: boolean): readonly Isolation[] {
  const node = nodeWords();
  const none: Isolation = { name: 'none', isFiltered: false, words: node };
  if (process.platform !== 'linux') return [none];
  const isRoot = process.getuid?.() === 0;
  const filtered = [...(isFiltered ? (filterWords() ?? []) : []), ...node];
  const apart = [
    ...unshared,
    ...script(inOwnRoot),
    ...['sh', mountPoint(), ...paths(), '--'],
    ...filtered,
  ];
  const words: Readonly<Record<Exclude<IsolationName, 'none'>, Words>> = {
    'namespaces and user': limited(apart, asUserNobody),
    namespaces: limited(apart),
    user: limited(filtered, [...asUserNobody, ...noPrivileges]),
    limits: limited(filtered, noPrivileges.slice(0, 1)),
  };
  const ways = Object.entries(words) as [IsolationName, Words][];
  return [
    ...ways
      .filter(([name]) => isRoot || !name.endsWith('user'))
      .map(([name, line]) => ({ name, isFiltered, words: line })),
    none,
  ];
}

/**
 * A command line that succeeds if a process may install the seccomp filter; `undefined` if no available program can
 * install one, or if there is no filter for this architecture.
 */
export function filterCommand(): Words | undefined {
  const words = filterWords();
  return words && [setpriv, ...noPrivileges.slice(0, 1), ...words, '/bin/true'];
}

const perl = '/usr/bin/perl';

/**
 * Neither Node nor a shell can install a filter, and setpriv cannot before util-linux 2.41. Perl has `syscall`, and
 * is an essential package of Debian and Ubuntu.
 *
 * It also closes all descriptors but the channel (close_range): the vault may have inherited some from the program
 * that started it, and a directory among them would lead out of an empty root.
 */
const installFilter = `
syscall(436, 3, 4294967295, 0);
my ($seccomp, $filter) = (shift, pack("H*", shift));
my $program = pack("S x![P] P", length($filter) / 8, $filter);
syscall($seccomp, 1, 0, $program) == 0 or die "seccomp: $!\n";
exec { $ARGV[0] } @ARGV or die "exec: $!\n";
`;

function filterWords(): Words | undefined {
  const filter = systemCallFilter();
  if (filter === undefined || process.platform !== 'linux' || !existsSync(perl)) return undefined;
  const { seccomp, program } = filter;
  return [perl, '-e', installFilter, String(seccomp), program.toString('hex')];
}

/**
 * Node's permission model denies files, network, processes, workers, and add-ons. It is only a seat belt (Node's
 * SECURITY.md): the engine's memory contains the code, and the namespaces contain this process.
 */
function nodeWords(): Words {
  const readable = [
    ...folders.map((one) => `${one}/*`),
    ...engineFolders().map((one) => `${one}/*`),
  ];
  return [
    process.execPath,
    '--permission',
    // Otherwise every folder above the library must be readable.
    '--preserve-symlinks',
    '--preserve-symlinks-main',
    ...readable.map((path) => `--allow-fs-read=${path}`),
    '--disable-sigusr1',
    '--no-warnings',
    // One call runs at a time: more V8 threads, up to one for each core, would only use memory.
    '--v8-pool-size=1',
    '--max-old-space-size=128',
    '--max-semi-space-size=1',
    '--expose-gc',
    // In pages of 64 KiB: bounds the memory of an engine that evades its own limit.
    '--wasm-max-mem-pages=1088',
    fileURLToPath(entryPointUrl(child)),
  ];
}

/** The folders of the library: its real path, and the path that an import resolves to. */
function engineFolders(): Words {
  const name = 'quickjs-wasi';
  const found = createRequire(import.meta.url)
    .resolve.paths(name)
    ?.map((place) => join(place, name))
    .find((place) => existsSync(place));
  return found === undefined ? [] : [...new Set([found, realpathSync(found)])];
}

const setpriv = '/usr/bin/setpriv';

/** Empty except for a variable that disables io_uring in libuv, because io_uring bypasses system call filters. */
const environment = '/usr/bin/env -i UV_USE_IO_URING=0';

const asUserNobody: Words = ['--reuid=65534', '--regid=65534', '--clear-groups'];

const noPrivileges: Words = ['--no-new-privs', '--bounding-set=-all', '--inh-caps=-all'];

/**
 * Prevents core files and file writes, limits descriptors and private memory, and ends this process with its parent,
 * also on SIGKILL. A later change of user would undo the last of these. If the system runs out of memory, it ends
 * this process before the vault.
 */
function limited(words: Words, privileges: Words = []): Words {
  const kibibytes = limits.dataBytesMax / 1024;
  const rules = [
    'set -e; echo 1000 2>/dev/null >/proc/self/oom_score_adj || :',
    `ulimit -c 0; ulimit -f 0; ulimit -n 64; ulimit -d ${kibibytes}`,
    `exec ${environment} "$@"`,
  ].join('; ');
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
 * The first argument is the mount point of the new root; the arguments up to `--` appear in it, read-only. The new
 * root has no /proc, of /dev only `null`, which Perl opens, and none of the vault's files.
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
mkdir "$root/.old" "$root/proc" "$root/dev"
: > "$root/dev/null"
mount --bind /dev/null "$root/dev/null"
# Only mount and umount need it.
mount --rbind /proc "$root/proc"
mount -o remount,bind,ro "$root"
cd "$root"
pivot_root . .old
cd /
umount -l /.old
umount -l /proc
exec ${environment} ${setpriv} ${noPrivileges.join(' ')} "$@"
`;

/** The system files are those of the distribution; the vault stores nothing in them. */
function paths(): Words {
  const system = ['/usr', '/bin', '/lib', '/lib64', '/sbin'].filter((path) => existsSync(path));
  // The manifest declares that our files are modules.
  const own = [...folders, manifestPath, ...engineFolders()];
  return [...system, ...new Set([...own, process.execPath])].filter(
    (path) => !path.startsWith('/usr/') && path !== '',
  );
}

/** A directory that is not on any other path. */
function mountPoint(): string {
  const used = [...folders, process.execPath, ...engineFolders()];
  const places = ['/mnt', '/media', '/srv', '/opt'];
  return (
    places.find((one) => existsSync(one) && !used.some((path) => path.startsWith(`${one}/`))) ??
    '/mnt'
  );
}

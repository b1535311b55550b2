/** A program in a network of its own, whose only door is a socket: namespaces of Linux, by tools of the system. */
import { spawnSync } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { entryPointUrl } from '../../base/installation/entry-points.ts';
import { UsageError } from '../terminal/command.ts';

/** Nothing else listens in a new network. */
export const insidePort = 8082;

/**
 * Only root of its namespaces may prepare them; the program is root there without any right. It sees no process but
 * its own, so none has a key that it could read, and no socket of the system's services. The first arguments, up to
 * `--`, are files and folders that it finds empty.
 */
const preparing = `
set -e
PATH=/usr/sbin:/usr/bin:/sbin:/bin
ip link set lo up
mount -t tmpfs -o size=1m,mode=0755 strongroom /run
while [ "$1" != -- ]; do
  if [ -d "$1" ]; then mount -t tmpfs -o size=1m,mode=0700 strongroom "$1"
  else mount --bind /dev/null "$1"; fi
  shift
done
shift
mount -t proc proc /proc
PATH=$1; shift
exec /usr/bin/setpriv --no-new-privs --bounding-set=-all --inh-caps=-all "$@"
`;

/** It ends with the command, however that ends, and with it all that is inside. */
const unshare = [
  ...['/usr/bin/setpriv', '--pdeathsig', 'KILL', '/usr/bin/unshare'],
  ...['--user', '--map-root-user', '--net', '--pid', '--ipc', '--uts', '--mount', '--fork'],
  '--kill-child',
];

export interface OwnNetwork {
  /** The socket of the relay. */
  readonly door: string;
  /** What the program must not read. */
  readonly hidden: readonly string[];
  /** The search path of the program. */
  readonly path: string;
}

/** The words that start the program in a network of its own. */
export function wordsInside(words: readonly string[], own: OwnNetwork): readonly string[] {
  const inside = fileURLToPath(entryPointUrl('cli/agent/inside'));
  return wordsOf([process.execPath, inside, own.door, String(insidePort), ...words], own);
}

function wordsOf(words: readonly string[], { hidden, path }: OwnNetwork): readonly string[] {
  const there = hidden.filter((one) => existsSync(one)).map((one) => realpathSync(one));
  return [...unshare, '/bin/sh', '-c', preparing, 'sh', ...there, '--', path, ...words];
}

/** @throws UsageError where the system has no such network for this user, with what it says. */
export function requireOwnNetwork(own: OwnNetwork): void {
  const [program = '', ...given] = wordsOf(['/bin/true'], own);
  const { error, status, stderr } = spawnSync(program, given, { encoding: 'utf8' });
  if (status === 0) return;
  const said = error?.message ?? stderr.trim().split('\n').at(-1) ?? '';
  throw new UsageError(
    `--only needs namespaces of Linux with unshare, ip, and setpriv, which do not work here: ${said}; run the ` +
      'command in a container whose only way out is the vault',
  );
}

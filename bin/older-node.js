/** Runs the command under the Node that is installed with it, for users whose own is too old. */
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';

const require = createRequire(import.meta.url);

const forwarded = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/** The path of the Node that the lock file pins for this system; `undefined` where none is installed. */
export function installedNode() {
  const system = process.platform === 'win32' ? 'win' : process.platform;
  const names = ['node', 'node-bin'].map((prefix) => `${prefix}-${system}-${process.arch}`);
  for (const name of names) {
    try {
      const manifest = require.resolve(`${name}/package.json`);
      return join(dirname(manifest), require(manifest).bin.node);
    } catch {
      // Of the two names a system has one at most, and packages may be installed without optional ones.
    }
  }
  return undefined;
}

/**
 * Signals go on to that process, and its end is the end of this one. The other way round it notices by the channel
 * between them when this one was killed.
 *
 * @returns {Promise<number | undefined>} the exit code; `undefined` where that Node does not run on this system, such
 *   as one without glibc.
 */
export function runUnder(node, script) {
  const child = spawn(node, [...process.execArgv, script, ...process.argv.slice(2)], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  });
  for (const signal of forwarded) process.on(signal, () => child.kill(signal));
  return new Promise((resolve) => {
    child.once('error', () => resolve(undefined));
    child.once('exit', (code, signal) =>
      // As shells report the end of a process by a signal.
      resolve(code === null ? 128 + constants.signals[signal] : code),
    );
  });
}

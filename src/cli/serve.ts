/** `strongroom serve`: runs the vault until it receives a request to stop. */
import { flushCompileCache } from 'node:module';
import { setFlagsFromString } from 'node:v8';
import { second } from '../base/clock.ts';
import { isLoopback } from '../base/network.ts';
import { createLog } from '../base/telemetry/log.ts';
import type { Isolation } from '../reactors/sandbox/isolation.ts';
import { findIsolation } from '../reactors/sandbox/probe.ts';
import { type Config, readConfig, readReloadable } from '../runtime/config/config.ts';
import type { Process } from '../runtime/process.ts';
import type { Running } from '../runtime/serve.ts';
import { browserUrl } from './browser-url.ts';
import { followSignals } from './lifetime.ts';
import { followedBy, type ServiceNotifications } from './service-manager.ts';
import type { Command } from './terminal/command.ts';
import { say, sayError } from './terminal/say.ts';
import type { Terminal } from './terminal/terminal.ts';

/**
 * A stop takes as long as requests may take to finish and a moment more. Where it hangs, because a database or a
 * collector of logs does, the process ends before Docker would kill it, after 10 s.
 */
const stopMsMax = 8 * second;

export const serveCommand: Command = {
  summary: 'Run the vault. It is configured by STRONGROOM_… variables; see docs/configuration.md.',
  flags: {},
  examples: [''],
  run: async (_flags, terminal) => {
    const { env, stderr } = terminal;
    const config = readConfig(env);
    const lifetime = followSignals(terminal);
    const manager = followedBy(terminal);
    const unlock = await lockData(config);
    const isolating = beginIsolation(config);
    let isSealed = false;
    const { serve } = await import('../runtime/serve.ts');
    const running = await serve(config, {
      onOpened: (vault) => {
        isSealed = false;
        showFirstStart(terminal, config, vault);
      },
      onSealed: (url, { needed }) => {
        isSealed = true;
        say(terminal, `Strongroom listens on ${url}`);
        const advice = `give ${needed} shares of its root key with "strongroom unseal"`;
        say(terminal, `The vault is sealed: ${advice}`);
        // It waits for people, so systemd must not wait for it.
        manager.ready(`Sealed: ${advice}`);
        void lifetime.stopped.then((reason) => {
          if (!isSealed) return;
          say(terminal, `Strongroom stops: ${reason}`);
          terminal.exit(0);
        });
      },
      findIsolation: () => isolating,
    });
    collectEarly();
    if (running.metricsUrl) say(terminal, `Metrics are at ${running.metricsUrl}`);
    say(terminal, `Strongroom listens on ${running.url}`);
    await showFirstLink(terminal, config, running);
    manager.ready(`Listens on ${running.url}`);
    manager.watch(running.respond);
    lifetime.onReload(() => void reload(terminal, running, manager));
    say(terminal, `Strongroom stops: ${await lifetime.stopped}`);
    manager.stopping();
    const late = setTimeout(() => {
      stderr.write('strongroom serve: the stop did not finish in time and was cut short\n');
      terminal.exit(1);
    }, stopMsMax);
    await running.stop();
    clearTimeout(late);
    unlock();
    // All data is on disk, and no client waits for the remaining calls to other hosts.
    terminal.exit(0);
    return 0;
  },
};

/** Its one line is written whatever the level of the log is. */
async function reload(
  terminal: Terminal,
  running: Running,
  manager: ServiceNotifications,
): Promise<void> {
  manager.reloading();
  const { isDone, text } = await running.reload(() => readReloadable(terminal.env));
  (isDone ? say : sayError)(terminal, text);
  manager.ready(isDone ? `Listens on ${running.url}` : text);
}

/**
 * It waits for other processes, for longer than the store takes to open, so it begins before most of the program is
 * read. Whether the start fails with it is decided where it is waited for.
 */
function beginIsolation({ reactors }: Config): Promise<Isolation | undefined> {
  if (!reactors.isOn) return Promise.resolve(undefined);
  const isolating = findIsolation(reactors.isolation);
  isolating.catch(() => undefined);
  return isolating;
}

/** Keeps other servers from the same embedded database, until the function it returns is called. */
async function lockData({ databaseUrl, dataDir, logLevel }: Config): Promise<() => void> {
  if (databaseUrl !== undefined) return () => undefined;
  const { lockDirectory } = await import('../store/sqlite/directory-lock.ts');
  const lock = lockDirectory(dataDir);
  if (!lock.isHeld) {
    createLog(logLevel).warn(
      'the data directory cannot be locked; make sure that no other server uses it',
    );
  }
  return lock.release;
}

/** Before it listens: if that fails, the next start shows no key any more. */
function showFirstStart(
  terminal: Terminal,
  { bootstrap: { keyFile } }: Config,
  { roots, bootstrapped }: Process,
): void {
  if (roots.chosen.created) {
    say(
      terminal,
      `Created the root key (${roots.chosen.origin}). Back it up separately from the database: ` +
        'without it nothing in this vault can ever be read again.',
    );
  }
  if (bootstrapped === undefined) return;
  const { tenant, newKey } = bootstrapped;
  say(terminal, `Created the tenant "${tenant.name}" of type ${tenant.type}.`);
  if (newKey !== undefined) say(terminal, `Its management key, shown only once: ${newKey}`);
  if (keyFile !== undefined) say(terminal, `Its management key is in the file ${keyFile}.`);
}

/**
 * A link to the console for the operator who has just made the vault, on the same machine. If the management key goes
 * to a file, what is printed goes to a log that others read: the link is as much as the key.
 */
async function showFirstLink(terminal: Terminal, config: Config, running: Running): Promise<void> {
  const { bootstrapped, vault, url } = running;
  if (bootstrapped === undefined || !config.console || !isLocalUrl(url)) return;
  if (config.bootstrap.keyFile !== undefined) {
    const { name } = bootstrapped.tenant;
    say(terminal, `\`strongroom person link --tenant ${name}\` prints a link to ${url}/console.`);
    return;
  }
  const { newLink } = await import('./person.ts');
  const { code } = await newLink(vault, { tenant: bootstrapped.tenant, application: null });
  say(terminal, `Open ${await browserUrl(url)}/console#${code}`);
}

function isLocalUrl(url: string): boolean {
  return isLoopback(new URL(url).hostname.replace(/^\[|\]$/g, '')) || /\/\/localhost\b/.test(url);
}

/**
 * From now on garbage is collected when the heap has doubled, not when it has grown fourfold: 20 to 80 MB
 * less under load for 5 to 10 % of its throughput. A start would only be slowed by it. Compiled code is kept
 * first, because V8 takes none that was compiled under other flags.
 */
function collectEarly(): void {
  flushCompileCache();
  setFlagsFromString('--heap-growing-percent=100');
}

/** What systemd is notified of where it runs the vault and asks for it: ready, reloading, stopping, alive. */
import { spawn } from 'node:child_process';
import { second } from '../base/clock.ts';
import { readVariable } from '../runtime/config/config.ts';
import { sayError } from './terminal/say.ts';
import type { Terminal } from './terminal/terminal.ts';

/** No notification fails or delays what it is about; they arrive in order. */
export interface ServiceNotifications {
  /** @param status what `systemctl status` shows. */
  ready(status: string): void;
  /** Until the next `ready`. */
  reloading(): void;
  stopping(): void;
  /** From now on systemd hears as often as it asks that the vault is alive, as long as `respond` resolves. */
  watch(respond: () => Promise<void>): void;
}

/** Node opens no datagram socket of a file system, so a program that comes with systemd sends them (ADR 44). */
const program = 'systemd-notify';
const sendMsMax = 10 * second;

export function followedBy(terminal: Terminal): ServiceNotifications {
  const { env } = terminal;
  const socket = readVariable(env, 'NOTIFY_SOCKET');
  if (socket === undefined) return unattended;
  let latest = Promise.resolve();
  let hasFailed = false;

  async function sendOrSay(assignments: readonly string[]): Promise<void> {
    const isSent = await send(assignments, {
      NOTIFY_SOCKET: socket,
      PATH: readVariable(env, 'PATH'),
    });
    if (isSent || hasFailed) return;
    hasFailed = true;
    sayError(terminal, `systemd cannot be notified: ${program} is missing or fails`);
  }

  function notify(...assignments: readonly string[]): Promise<void> {
    latest = latest.then(() => sendOrSay(assignments));
    return latest;
  }

  return {
    ready: (status) => void notify('READY=1', `STATUS=${status}`),
    // What began before the reload must not be taken for its end, so systemd asks for the time, in microseconds.
    reloading: () =>
      void notify('RELOADING=1', `MONOTONIC_USEC=${process.hrtime.bigint() / 1000n}`),
    stopping: () => void notify('STOPPING=1', 'STATUS=Finishes what is in flight'),
    watch: (respond) => {
      const everyMs = watchdogMs(terminal);
      if (everyMs === undefined) return;
      let isUnderWay = false;
      const look = async () => {
        if (isUnderWay) return;
        isUnderWay = true;
        try {
          await respond();
          await notify('WATCHDOG=1');
        } catch {
          // A thread that ends while it is asked has another in its place at the next look.
        } finally {
          isUnderWay = false;
        }
      };
      setInterval(look, everyMs / 2).unref();
    },
  };
}

const unattended: ServiceNotifications = {
  ready: () => undefined,
  reloading: () => undefined,
  stopping: () => undefined,
  watch: () => undefined,
};

/** Within which time systemd expects to hear of this process; `undefined` if it expects nothing. */
function watchdogMs({ env }: Terminal): number | undefined {
  const pid = readVariable(env, 'WATCHDOG_PID');
  const microseconds = Number(readVariable(env, 'WATCHDOG_USEC') ?? 0);
  if (pid !== undefined && Number(pid) !== process.pid) return undefined;
  return microseconds > 0 ? microseconds / 1000 : undefined;
}

/** Resolves when systemd has it, with whether that is so. */
function send(
  assignments: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn(program, assignments, { env, stdio: 'ignore', timeout: sendMsMax });
    child.on('error', () => resolve(false));
    child.on('close', (code) => resolve(code === 0));
  });
}

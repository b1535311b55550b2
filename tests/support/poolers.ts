/** PgBouncer and HAProxy in front of a PostgreSQL, on machines that have them. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { untilSo } from './poll.ts';
import { freePort, type Lender, temporaryDirectory } from './temporary.ts';

/** PgBouncer refuses to run as root. */
const account = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

/** What the program calls itself, or `undefined` where there is none. */
export function versionOf(program: 'pgbouncer' | 'haproxy'): string | undefined {
  const { status, stdout } = spawnSync(program, [program === 'haproxy' ? '-v' : '--version'], {
    encoding: 'utf8',
  });
  return status === 0 ? stdout.split('\n')[0] : undefined;
}

/** The URL by way of a PgBouncer in transaction mode, with few connections to the server. */
export async function startPgBouncer(
  t: Lender,
  databaseUrl: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<string> {
  return (await beginPgBouncer(t, databaseUrl, { settings })).url;
}

interface PoolerOptions {
  readonly settings: Readonly<Record<string, string>>;
  /** What each connection to the server begins with. */
  readonly connectQuery?: string;
}

/** The same with the id of its process. */
export async function beginPgBouncer(
  t: Lender,
  databaseUrl: string,
  { settings, connectQuery }: PoolerOptions,
): Promise<{ readonly url: string; readonly pid: number }> {
  const { hostname, port: serverPort, username } = new URL(databaseUrl);
  const all = {
    listen_addr: '127.0.0.1',
    listen_port: String(await freePort()),
    unix_socket_dir: '',
    auth_type: 'any',
    pool_mode: 'transaction',
    default_pool_size: '3',
    max_client_conn: '200',
    ...settings,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name} = ${value}`);
  const atConnect = connectQuery === undefined ? '' : ` connect_query='${connectQuery}'`;
  const target = `* = host=${hostname} port=${serverPort} user=${username}${atConnect}`;
  const text = ['[databases]', target, '[pgbouncer]', ...lines, ''].join('\n');
  const port = Number(all.listen_port);
  const pid = await start(t, 'pgbouncer', { text, flags: [], port });
  return { url: moved(databaseUrl, all.listen_port), pid };
}

/** The URL by way of an HAProxy, which takes the first of the servers that accepts connections. */
export async function startHaproxy(t: Lender, databaseUrls: readonly string[]): Promise<string> {
  const listen = String(await freePort());
  const checks = 'check inter 200ms fall 1 rise 1 on-marked-down shutdown-sessions';
  const servers = databaseUrls.map((url, index) => {
    const role = index > 0 ? ' backup' : '';
    return `  server s${index} ${new URL(url).host} ${checks}${role}`;
  });
  const text = `defaults
  mode tcp
  timeout connect 2s
  timeout client 1m
  timeout server 1m
listen postgresql
  bind 127.0.0.1:${listen}
${servers.join('\n')}
`;
  await start(t, 'haproxy', { text, flags: ['-db', '-f'], port: Number(listen) });
  return moved(databaseUrls[0] ?? '', listen);
}

function moved(databaseUrl: string, port: string): string {
  const url = new URL(databaseUrl);
  url.port = port;
  return url.href;
}

interface Program {
  readonly text: string;
  readonly flags: readonly string[];
  readonly port: number;
}

/** @returns the id of its process. */
async function start(t: Lender, program: string, { text, flags, port }: Program): Promise<number> {
  const directory = temporaryDirectory(t);
  chmodSync(directory, 0o755);
  const file = join(directory, `${program}.cfg`);
  writeFileSync(file, text);
  const child = spawn(program, [...flags, file], { ...account, stdio: 'ignore' });
  const exited = once(child, 'exit');
  const kill = () => void child.kill('SIGKILL');
  process.once('exit', kill);
  t.after(async () => {
    kill();
    await exited;
  });
  await untilAccepts(port);
  return child.pid ?? 0;
}

/** Waits until a program listens on this port of 127.0.0.1. */
export async function untilAccepts(port: number): Promise<void> {
  await untilSo(
    () => accepts(port),
    () => `no program listens on port ${port}`,
  );
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const settle = (is: boolean) => {
      socket.destroy();
      resolve(is);
    };
    socket.once('connect', () => settle(true));
    socket.once('error', () => settle(false));
  });
}

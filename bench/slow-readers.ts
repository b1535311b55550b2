/** What clients that never read cost in memory: 40 that ask for a page of 100 MB, and 40 that detokenize. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type Column, digits, table } from './markdown.ts';
import { using } from './resources.ts';
import { engineOf, engines } from './storage.ts';
import { startVault, type Vault } from './vault.ts';

const tokens = 100;
/** With the rest of the request just below what a body may have. */
const dataBytes = 1_048_000;
/** As many of that size as one request may resolve. */
const resolvedTokens = 4;
const clients = 40;
const megabyte = 1_048_576;
const residentGoalBytes = 400 * megabyte;

const { values: flags } = parseArgs({
  options: {
    seconds: { type: 'string', default: '10' },
    engine: { type: 'string', multiple: true, default: Object.keys(engines) },
    path: { type: 'string', default: `/tokens?size=${tokens}` },
  },
});

interface Measured {
  readonly engine: string;
  readonly request: string;
  readonly before: number;
  readonly peak: number;
}

const columns: readonly Column<Measured>[] = [
  { title: 'engine', cell: ({ engine }) => engine },
  { title: 'request', cell: ({ request }) => request },
  { title: 'resident MB before', cell: ({ before }) => digits(before / megabyte) },
  { title: 'resident MB at most', cell: ({ peak }) => digits(peak / megabyte) },
  { title: 'below 400 MB', cell: ({ peak }) => (peak < residentGoalBytes ? 'yes' : 'no') },
];

const measured: Measured[] = [];
for (const engine of flags.engine) {
  const vault = await startVault(await engineOf(engine)());
  try {
    measured.push(...(await measure(engine, vault)));
  } finally {
    await vault.close();
  }
}
process.stdout.write(`${table(columns, measured)}\n`);
process.exitCode = measured.every(({ peak }) => peak < residentGoalBytes) ? 0 : 1;

async function measure(engine: string, vault: Vault): Promise<readonly Measured[]> {
  const body = JSON.stringify({ type: 'token', data: 'x'.repeat(dataBytes) });
  const ids: string[] = [];
  for (let stored = 0; stored < tokens; stored += 1) {
    const made = await vault.send('POST', { path: '/tokens', body });
    ids.push(JSON.parse(made).id);
  }
  const resolving = JSON.stringify(ids.slice(0, resolvedTokens).map((id) => `{{ ${id} }}`));
  const results: Measured[] = [];
  for (const request of [
    { line: `GET ${flags.path}`, body: '' },
    { line: 'POST /detokenize', body: resolving },
  ]) {
    // What came before is no part of the measurement.
    await vault.restart();
    const { used } = await using({ pid: vault.server.pid }, async () => {
      const asking = Array.from({ length: clients }, () => askAndIgnore(vault, request));
      const sockets = await Promise.all(asking);
      await pause(Number(flags.seconds) * 1_000);
      for (const socket of sockets) socket.destroy();
    });
    const [before = Number.NaN] = used.residentBytes;
    const peak = Math.max(...used.residentBytes);
    results.push({ engine, request: request.line, before, peak });
  }
  return results;
}

/** Sends the request and never reads a byte of the response. */
async function askAndIgnore(
  { server, keys }: Vault,
  { line, body }: { readonly line: string; readonly body: string },
): Promise<Socket> {
  const { hostname, port, host } = new URL(server.url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  // The server is to cut the connection, or to be killed for want of memory.
  socket.on('error', () => undefined);
  socket.pause();
  const head = [
    `${line} HTTP/1.1`,
    `host: ${host}`,
    `svc-api-key: ${keys.reveal}`,
    ...(body && ['content-type: application/json', `content-length: ${body.length}`]),
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
  return socket;
}

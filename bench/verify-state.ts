/** How fast `strongroom logs verify` reads a log, and with `--state` the tables that it must explain. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { bulkTarget, postLines } from './lines.ts';
import { type Column, digits, median, table } from './markdown.ts';
import { requestOf } from './mixture.ts';
import { engineOf, engines } from './storage.ts';
import { startVault, type Vault } from './vault.ts';

const command = fileURLToPath(new URL('../bin/strongroom.js', import.meta.url));
const run = promisify(execFile);

const { values: flags } = parseArgs({
  options: {
    tokens: { type: 'string', default: '200000' },
    rounds: { type: 'string', default: '3' },
    engine: { type: 'string', multiple: true, default: Object.keys(engines) },
  },
});
const tokens = Number(flags.tokens);
const rounds = Number(flags.rounds);

interface Result {
  readonly engine: string;
  readonly rows: number;
  /** Of the log alone, and of the log and the tables. */
  readonly log: Taken;
  readonly state: Taken;
}

interface Taken {
  readonly seconds: number;
  readonly cpuSeconds: number;
}

/** Whatever else the machine does, the command's own processor time stays the same. */
const reportCpu =
  'data:text/javascript,process.on("exit",()=>process.stderr.write("\\n"+JSON.stringify(process.cpuUsage())))';

const columns: readonly Column<Result>[] = [
  { title: 'engine', cell: ({ engine }) => engine },
  { title: 'rows', cell: ({ rows }) => digits(rows) },
  { title: 'log alone, s', cell: ({ log }) => digits(log.seconds, 1) },
  { title: 'processor s', cell: ({ log }) => digits(log.cpuSeconds, 1) },
  { title: 'log and state, s', cell: ({ state }) => digits(state.seconds, 1) },
  { title: 'processor s', cell: ({ state }) => digits(state.cpuSeconds, 1) },
  { title: 'rows/s', cell: ({ rows, state }) => digits(rows / state.seconds) },
  {
    title: 'rows in a processor second more',
    cell: ({ rows, log, state }) => digits(rows / (state.cpuSeconds - log.cpuSeconds)),
  },
];

const results: Result[] = [];
for (const engine of flags.engine) {
  const vault = await startVault(await engineOf(engine)());
  try {
    results.push(await measure(engine, vault));
  } finally {
    await vault.close();
  }
}
process.stdout.write(`${table(columns, results)}\n`);

/** The medians of whole runs, the start of the command included. */
async function measure(engine: string, vault: Vault): Promise<Result> {
  let created = 0;
  const { server, keys } = vault;
  await postLines(bulkTarget(server.url, keys.reveal), mixedLines(), () => {
    created += 1;
  });
  assert.equal(created, tokens, 'every line is answered');
  const log: Taken[] = [];
  const state: Taken[] = [];
  let rows = 0;
  for (let round = 0; round < rounds; round += 1) {
    log.push(await verified(vault));
    const whole = await verified(vault, '--state');
    state.push(whole);
    rows = whole.rows;
  }
  return { engine, rows, log: mediansOf(log), state: mediansOf(state) };
}

function mediansOf(taken: readonly Taken[]): Taken {
  return {
    seconds: median(taken.map(({ seconds }) => seconds)),
    cpuSeconds: median(taken.map(({ cpuSeconds }) => cpuSeconds)),
  };
}

function* mixedLines(): Generator<string> {
  for (let serial = 0; serial < tokens; serial += 1) yield JSON.stringify(requestOf(serial));
}

async function verified({ storage }: Vault, ...more: readonly string[]) {
  const started = performance.now();
  const words = ['--import', reportCpu, command, 'logs', 'verify', '--json', ...more];
  const env = { ...process.env, ...storage.env };
  const { stdout, stderr } = await run(process.execPath, words, { env });
  const { rows = 0, findings } = JSON.parse(stdout);
  assert.deepEqual(findings, []);
  const { user, system } = JSON.parse(stderr.slice(stderr.lastIndexOf('\n')));
  const seconds = (performance.now() - started) / 1000;
  return { rows: Number(rows), seconds, cpuSeconds: (user + system) / 1e6 };
}

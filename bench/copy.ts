/**
 * How long `strongroom database copy` takes from the embedded database to PostgreSQL and back, while no server runs and
 * while one serves, with the most memory that the command has at once. `--only to` leaves out all but the first.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { startPostgres } from '../tests/support/postgres.ts';
import { type Column, digits, table } from './markdown.ts';
import { grow, nobody } from './population.ts';
import { engineOf } from './storage.ts';
import { startVault } from './vault.ts';

const command = fileURLToPath(new URL('../bin/strongroom.js', import.meta.url));
const run = promisify(execFile);

const { values: flags } = parseArgs({
  options: {
    tokens: { type: 'string', default: '1000000' },
    only: { type: 'string', multiple: true, default: ['to', 'back', 'live'] },
    /** A directory for profiles of the processor time of each command. */
    profiles: { type: 'string' },
  },
});

interface Result {
  readonly name: string;
  readonly rows: number;
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly residentMb: number;
  /** How long writes waited. */
  readonly stoppedMs: number | undefined;
}

const columns: readonly Column<Result>[] = [
  { title: `${digits(Number(flags.tokens))} cards`, cell: ({ name }) => name },
  { title: 'rows', cell: ({ rows }) => digits(rows) },
  { title: 'seconds', cell: ({ seconds }) => digits(seconds) },
  { title: 'processor s of the command', cell: ({ cpuSeconds }) => digits(cpuSeconds) },
  { title: 'most memory, MB', cell: ({ residentMb }) => digits(residentMb) },
  {
    title: 'writes waited, ms',
    cell: ({ stoppedMs }) => (stoppedMs === undefined ? '' : digits(stoppedMs)),
  },
];

/** The command's own processor time and memory, as its last line of standard error. */
const reportResources =
  'data:text/javascript,process.on("exit",()=>process.stderr.write("\\n"+JSON.stringify(process.resourceUsage())))';

const results: Result[] = [];
const storage = await engineOf('embedded')();
const postgres = await startPostgres();
const back = mkdtempSync(join(tmpdir(), 'strongroom-bench-'));
try {
  const from = storage.env['STRONGROOM_DATA_DIR'] ?? '';
  const vault = await startVault(storage);
  await grow(vault, nobody, Number(flags.tokens));
  const [served, still] = [await postgres.createDatabase(), await postgres.createDatabase()];
  const rootKey = { STRONGROOM_ROOT_KEY_FILE: join(from, 'root.key') };
  await vault.server.stop();
  if (flags.only.includes('to')) {
    results.push(await copied('embedded to PostgreSQL', ['--from', from, '--to', still]));
  }
  if (flags.only.includes('back')) {
    results.push(await copied('PostgreSQL to embedded', ['--from', still, '--to', back]));
  }
  if (flags.only.includes('live')) {
    await vault.restart();
    results.push(
      await copied('the first while it serves', ['--live', '--from', from, '--to', served]),
    );
  }
  await vault.close();

  async function copied(name: string, words: readonly string[]): Promise<Result> {
    const started = performance.now();
    const profile =
      flags.profiles === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${flags.profiles}`];
    const all = [
      ...profile,
      '--import',
      reportResources,
      command,
      'database',
      'copy',
      '--json',
      ...words,
    ];
    const env = { ...process.env, ...rootKey };
    const { stdout, stderr } = await run(process.execPath, all, { env });
    const seconds = (performance.now() - started) / 1000;
    const { rows, tables, stopped_ms: stoppedMs } = JSON.parse(stdout);
    assert.equal(tables.tokens.rows, Number(flags.tokens));
    const { userCPUTime, systemCPUTime, maxRSS } = JSON.parse(
      stderr.slice(stderr.lastIndexOf('\n')),
    );
    const cpuSeconds = (userCPUTime + systemCPUTime) / 1e6;
    process.stderr.write(`${name}: ${digits(seconds)} s\n`);
    return { name, rows, seconds, cpuSeconds, residentMb: maxRSS / 1024, stoppedMs };
  }
} finally {
  await postgres.stop();
  rmSync(back, { recursive: true, force: true });
}
process.stdout.write(`${table(columns, results)}\n`);

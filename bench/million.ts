/**
 * A million tokens: imported, listed to the end through the cursor while others are created, searched,
 * exported, and compared with what went in. Ends with a failure when a single token is lost, doubled
 * or not as it was.
 */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { availableParallelism, cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { freePort } from '../tests/support/temporary.ts';
import { getLines, idOf, nameOf, postLines, requestOf, serialOf } from './lines.ts';
import { cpuSeconds, residentBytes, startServer } from './process.ts';
import { median } from './report.ts';
import { engines, headersOf, startVault, type Vault } from './vault.ts';

const pageSize = 100;
const searches = 300;
/** The smaller vault with whose pages those of the full one are compared. */
const baseTokens = 10_000;
const yardstickTokens = 100_000;

const { values: flags } = parseArgs({
  options: {
    tokens: { type: 'string', default: '1000000' },
    engine: { type: 'string', multiple: true },
  },
});
const tokens = Number(flags.tokens);

say(`Node ${process.version}, ${availableParallelism()} × ${cpus()[0]?.model ?? 'unknown'}`);
const yardstick = await measureYardstick();
for (const engine of flags.engine ?? Object.keys(engines)) {
  const open = engines[engine];
  if (open === undefined) throw new Error(`there is no engine ${engine}`);
  const vault = await startVault(await open());
  try {
    await measure(engine, vault);
  } finally {
    await vault.close();
  }
}

async function measure(engine: string, vault: Vault): Promise<void> {
  const key = await vault.createApplication('reveal');
  const tell = (text: string) => say(`${engine}: ${text}`);
  const base = Math.min(baseTokens, tokens);
  await importTokens(vault, key, { from: 0, to: base });
  const basePages = await timePages(vault, key);
  const baseSearches = await timeSearches(vault, key, base);

  const cpuBefore = cpuSeconds(vault.server.pid);
  const started = performance.now();
  await importTokens(vault, key, { from: base, to: tokens });
  const rate = (tokens - base) / secondsSince(started);
  const cpu = cpuSeconds(vault.server.pid) - cpuBefore;
  tell(
    `import ${rate.toFixed(0)} tokens/s, ${((tokens - base) / cpu).toFixed(0)} per second of processor ` +
      `time, ${(rate / yardstick).toFixed(2)} of the yardstick; resident ${megabytes(vault)} MB`,
  );

  const walk = await walkWithWriter(vault, key);
  tell(
    `list ${walk.pages} pages of ${pageSize} in ${walk.seconds.toFixed(0)} s, first tenth ` +
      `${walk.firstMs.toFixed(2)} ms a page, last tenth ${walk.lastMs.toFixed(2)} ms; ` +
      `${walk.written} tokens created meanwhile`,
  );
  const pages = await timePages(vault, key);
  tell(`page of 20: ${against(pages, basePages)}`);
  tell(`search: ${against(await timeSearches(vault, key, tokens), baseSearches)}`);

  const exporting = performance.now();
  const exported = await exportTokens(vault, key);
  tell(
    `export ${(exported / secondsSince(exporting)).toFixed(0)} tokens/s, resident ${megabytes(vault)} MB; ` +
      `all ${tokens} as they went in`,
  );
}

async function importTokens(
  vault: Vault,
  key: string,
  serials: { readonly from: number; readonly to: number },
): Promise<void> {
  let created = 0;
  await postLines(bulkTarget(vault.server.url, key), serials, (line) => {
    if (!line.includes('"status":201')) throw new Error(line.toString('utf8'));
    created += 1;
  });
  assert.equal(created, serials.to - serials.from, 'every line is answered');
}

function bulkTarget(url: string, key: string) {
  const headers = { ...headersOf(key), 'content-type': 'application/x-ndjson' };
  return { url: `${url}/tokens/bulk`, headers };
}

interface Page {
  readonly pagination: { readonly next?: string };
  readonly data: readonly { readonly id: string; readonly data: unknown }[];
}

async function pageAfter(vault: Vault, key: string, size: number, start = ''): Promise<Page> {
  return JSON.parse(await vault.send(key, `/v2/tokens?size=${size}&start=${start}`));
}

async function walkWithWriter(vault: Vault, key: string) {
  const seen = new Set<number>();
  const times: number[] = [];
  const started = performance.now();
  let walking = true;
  const writing = (async () => {
    let written = 0;
    for (; walking; written += 1) {
      await vault.createToken(key, JSON.stringify({ type: 'token', data: `meanwhile ${written}` }));
    }
    return written;
  })();
  for (let start: string | undefined = ''; start !== undefined; ) {
    const asked = performance.now();
    const page: Page = await pageAfter(vault, key, pageSize, start);
    times.push(performance.now() - asked);
    for (const { id } of page.data) {
      const serial = serialOf(id);
      if (serial === undefined) continue;
      assert.ok(!seen.has(serial), `${id} was listed twice`);
      seen.add(serial);
    }
    start = page.pagination.next;
  }
  walking = false;
  assert.equal(seen.size, tokens, 'every token was listed');
  const tenth = Math.ceil(times.length / 10);
  return {
    pages: times.length,
    seconds: secondsSince(started),
    firstMs: median(times.slice(0, tenth)),
    lastMs: median(times.slice(-tenth)),
    written: await writing,
  };
}

/** Milliseconds of a page of 20, taken from the beginning of the list. */
async function timePages(vault: Vault, key: string): Promise<number> {
  const times: number[] = [];
  let start: string | undefined = '';
  for (let count = 0; count < searches && start !== undefined; count += 1) {
    const asked = performance.now();
    const page: Page = await pageAfter(vault, key, 20, start);
    times.push(performance.now() - asked);
    start = page.pagination.next;
  }
  return median(times);
}

/** Milliseconds of a search for one name, which must find its token and no other. */
async function timeSearches(vault: Vault, key: string, count: number): Promise<number> {
  const times: number[] = [];
  for (let search = 0; search < searches; search += 1) {
    const serial = randomInt(Math.floor(count / 3)) * 3 + 2;
    const body = JSON.stringify({ query: `data:"${nameOf(serial)}"` });
    const asked = performance.now();
    const { data }: Page = JSON.parse(await vault.send(key, '/v2/tokens/search', body));
    times.push(performance.now() - asked);
    assert.deepEqual(
      data.map(({ id }) => id),
      [idOf(serial)],
    );
  }
  return median(times);
}

async function exportTokens(vault: Vault, key: string): Promise<number> {
  const seen = new Uint8Array(tokens);
  let exported = 0;
  let last = '';
  const target = { url: `${vault.server.url}/tokens/export`, headers: headersOf(key) };
  await getLines(target, (line) => {
    last = line.toString('utf8');
    const { id = '', data } = JSON.parse(last) as Partial<Page['data'][number]>;
    exported += 1;
    const serial = serialOf(id);
    if (serial === undefined) return;
    assert.equal(seen[serial], 0, `${id} was exported twice`);
    seen[serial] = 1;
    const expected = JSON.stringify(requestOf(serial).data);
    assert.equal(JSON.stringify(data), expected, `${id} is not as it went in`);
  });
  assert.equal(last, JSON.stringify({ exported: exported - 1 }), 'the export was whole');
  assert.ok(
    seen.every((count) => count === 1),
    'every token was exported',
  );
  return exported - 1;
}

/** Lines a second that bare `node:http` parses and echoes. */
async function measureYardstick(): Promise<number> {
  const port = await freePort();
  const env = { YARDSTICK_PORT: String(port) };
  const server = await startServer({ command: ['bench/yardstick.ts'], port, env, readyPath: '/' });
  try {
    const rates: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      const started = performance.now();
      const serials = { from: 0, to: yardstickTokens };
      await postLines(bulkTarget(server.url, 'none'), serials, () => undefined);
      rates.push(yardstickTokens / secondsSince(started));
    }
    say(`yardstick: ${median(rates).toFixed(0)} lines/s (median of ${rates.length})`);
    return median(rates);
  } finally {
    await server.stop();
  }
}

function against(ms: number, baseMs: number): string {
  const ratio = (ms / baseMs).toFixed(2);
  return `${ms.toFixed(2)} ms among ${tokens}, ${baseMs.toFixed(2)} ms among ${baseTokens}: ratio ${ratio}`;
}

function megabytes({ server }: Vault): string {
  return (residentBytes(server.pid) / 1e6).toFixed(0);
}

function secondsSince(started: number): number {
  return (performance.now() - started) / 1000;
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

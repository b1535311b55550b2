/**
 * Whether a million tokens are all there: imported, listed to the end through the cursor while others are
 * created, exported, and compared with what went in. Ends with a failure when a single token is lost,
 * doubled or not as it was. The full benchmark measures how fast that is.
 */
import assert from 'node:assert/strict';
import { parseArgs } from 'node:util';
import { bulkTarget, getLines, postLines } from './lines.ts';
import { type Column, digits, median, table } from './markdown.ts';
import { idOf, nameOf, requestOf, serialOf } from './mixture.ts';
import { residentBytes } from './resources.ts';
import { engineOf, engines } from './storage.ts';
import { headersOf, startVault, type Vault } from './vault.ts';

const pageSize = 100;
const searches = 300;

const { values: flags } = parseArgs({
  options: {
    tokens: { type: 'string', default: '1000000' },
    engine: { type: 'string', multiple: true, default: Object.keys(engines) },
  },
});
const tokens = Number(flags.tokens);

/** Progress is reported each time so many more are done. */
const stride = Math.max(1, Math.floor(tokens / 20));

interface Result {
  readonly engine: string;
  readonly importPerSecond: number;
  readonly walk: Awaited<ReturnType<typeof walkWithWriter>>;
  readonly searchMs: number;
  readonly exportPerSecond: number;
  readonly residentMb: number;
}

const columns: readonly Column<Result>[] = [
  { title: `${digits(tokens)} tokens`, cell: ({ engine }) => engine },
  { title: 'import/s', cell: ({ importPerSecond }) => digits(importPerSecond) },
  { title: `walk s, by ${pageSize}`, cell: ({ walk }) => digits(walk.seconds) },
  { title: 'first tenth, ms a page', cell: ({ walk }) => digits(walk.firstMs, 2) },
  { title: 'last tenth, ms a page', cell: ({ walk }) => digits(walk.lastMs, 2) },
  { title: 'created meanwhile', cell: ({ walk }) => digits(walk.written) },
  { title: 'search ms', cell: ({ searchMs }) => digits(searchMs, 2) },
  { title: 'export/s', cell: ({ exportPerSecond }) => digits(exportPerSecond) },
  { title: 'resident MB', cell: ({ residentMb }) => digits(residentMb) },
];

const results: Result[] = [];
for (const engine of flags.engine) {
  const vault = await startVault(await engineOf(engine)());
  try {
    results.push(await compare(engine, vault));
  } finally {
    await vault.close();
  }
}
process.stdout.write(`${table(columns, results)}\n\nAll came out as they went in.\n`);

async function compare(engine: string, vault: Vault): Promise<Result> {
  const progressOf = (what: string) => (done: number) => {
    if (done % stride === 0) process.stderr.write(`${engine}: ${what} ${digits(done)}\n`);
  };
  const importing = performance.now();
  await importTokens(vault, progressOf('imported'));
  const importPerSecond = tokens / secondsSince(importing);
  const walk = await walkWithWriter(vault, progressOf('listed'));
  const searchMs = await searchNames(vault);
  const exporting = performance.now();
  const exported = await exportTokens(vault, progressOf('exported'));
  const exportPerSecond = exported / secondsSince(exporting);
  const residentMb = residentBytes(vault.server.pid) / 1e6;
  return { engine, importPerSecond, walk, searchMs, exportPerSecond, residentMb };
}

type OnProgress = (done: number) => void;

async function importTokens({ server, keys }: Vault, onProgress: OnProgress): Promise<void> {
  let created = 0;
  await postLines(bulkTarget(server.url, keys.reveal), mixedLines(), (line) => {
    if (!line.includes('"status":201')) throw new Error(line.toString('utf8'));
    created += 1;
    onProgress(created);
  });
  assert.equal(created, tokens, 'every line is answered');
}

function* mixedLines(): Generator<string> {
  for (let serial = 0; serial < tokens; serial += 1) yield JSON.stringify(requestOf(serial));
}

interface Page {
  readonly pagination: { readonly next?: string };
  readonly data: readonly { readonly id: string; readonly data: unknown }[];
}

async function walkWithWriter(vault: Vault, onProgress: OnProgress) {
  const seen = new Set<number>();
  const times: number[] = [];
  const started = performance.now();
  let walking = true;
  const writing = (async () => {
    let written = 0;
    for (; walking; written += 1) {
      const body = JSON.stringify({ type: 'token', data: `meanwhile ${written}` });
      await vault.send('POST', { path: '/tokens', body });
    }
    return written;
  })();
  for (let start: string | undefined = ''; start !== undefined; ) {
    const asked = performance.now();
    const path = `/v2/tokens?size=${pageSize}&start=${start}`;
    const page: Page = JSON.parse(await vault.send('GET', { path }));
    times.push(performance.now() - asked);
    for (const { id } of page.data) {
      const serial = serialOf(id);
      if (serial === undefined) continue;
      assert.ok(!seen.has(serial), `${id} was listed twice`);
      seen.add(serial);
      onProgress(seen.size);
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

/** Milliseconds of a search for a name, which finds its token and no other. */
async function searchNames(vault: Vault): Promise<number> {
  const times: number[] = [];
  const every = Math.ceil(tokens / searches);
  for (let at = 0; at < tokens; at += every) {
    const serial = at - (at % 3) + 2;
    if (serial >= tokens) break;
    const body = JSON.stringify({ query: `data:"${nameOf(serial)}"` });
    const asked = performance.now();
    const answer = await vault.send('POST', { path: '/v2/tokens/search', body });
    times.push(performance.now() - asked);
    const { data }: Page = JSON.parse(answer);
    assert.deepEqual(
      data.map(({ id }) => id),
      [idOf(serial)],
    );
  }
  return median(times);
}

async function exportTokens({ server, keys }: Vault, onProgress: OnProgress): Promise<number> {
  const seen = new Uint8Array(tokens);
  let exported = 0;
  let last = '';
  const target = { url: `${server.url}/tokens/export`, headers: headersOf(keys.reveal) };
  await getLines(target, (line) => {
    last = line.toString('utf8');
    const { id = '', data } = JSON.parse(last) as Partial<Page['data'][number]>;
    exported += 1;
    onProgress(exported);
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

function secondsSince(started: number): number {
  return (performance.now() - started) / 1_000;
}

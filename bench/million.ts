/**
 * Whether a million tokens are all there: imported, listed to the end through the cursor while others are
 * created, exported, and compared with what went in. Ends with a failure when a single token is lost,
 * doubled or not as it was. How fast that is, the full benchmark tells.
 */
import assert from 'node:assert/strict';
import { parseArgs } from 'node:util';
import { bulkTarget, getLines, postLines } from './lines.ts';
import { digits, median } from './markdown.ts';
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

for (const engine of flags.engine) {
  const vault = await startVault(await engineOf(engine)());
  try {
    await compare(engine, vault);
  } finally {
    await vault.close();
  }
}

async function compare(engine: string, vault: Vault): Promise<void> {
  const tell = (text: string) => process.stdout.write(`${engine}: ${text}\n`);
  const importing = performance.now();
  await importTokens(vault);
  tell(`import ${digits(tokens / secondsSince(importing))} tokens/s, ${resident(vault)}`);
  const walk = await walkWithWriter(vault);
  tell(
    `list ${walk.pages} pages of ${pageSize} in ${digits(walk.seconds)} s, first tenth ` +
      `${digits(walk.firstMs, 2)} ms a page, last tenth ${digits(walk.lastMs, 2)} ms; ` +
      `${walk.written} tokens created meanwhile`,
  );
  await searchNames(vault);
  const exporting = performance.now();
  const exported = await exportTokens(vault);
  tell(`export ${digits(exported / secondsSince(exporting))} tokens/s, ${resident(vault)}`);
  tell(`all ${tokens} as they went in`);
}

async function importTokens({ server, keys }: Vault): Promise<void> {
  let created = 0;
  await postLines(bulkTarget(server.url, keys.reveal), mixedLines(), (line) => {
    if (!line.includes('"status":201')) throw new Error(line.toString('utf8'));
    created += 1;
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

async function walkWithWriter(vault: Vault) {
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

/** A search for a name finds its token and no other. */
async function searchNames(vault: Vault): Promise<void> {
  const every = Math.ceil(tokens / searches);
  for (let at = 0; at < tokens; at += every) {
    const serial = at - (at % 3) + 2;
    if (serial >= tokens) return;
    const body = JSON.stringify({ query: `data:"${nameOf(serial)}"` });
    const answer = await vault.send('POST', { path: '/v2/tokens/search', body });
    const { data }: Page = JSON.parse(answer);
    assert.deepEqual(
      data.map(({ id }) => id),
      [idOf(serial)],
    );
  }
}

async function exportTokens({ server, keys }: Vault): Promise<number> {
  const seen = new Uint8Array(tokens);
  let exported = 0;
  let last = '';
  const target = { url: `${server.url}/tokens/export`, headers: headersOf(keys.reveal) };
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

function resident({ server }: Vault): string {
  return `resident ${digits(residentBytes(server.pid) / 1e6)} MB`;
}

function secondsSince(started: number): number {
  return (performance.now() - started) / 1_000;
}

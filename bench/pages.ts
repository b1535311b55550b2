/**
 * What a page of 20 costs among few tokens and among many, in one vault that grows: lists at their
 * beginning, middle and end, with and without filters, and searches for rare and for common terms.
 */
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { bulkTarget, postLines } from './lines.ts';
import { type Column, digits, median, table } from './markdown.ts';
import { nameOf, requestOf } from './mixture.ts';
import { engineOf, engines } from './storage.ts';
import { startVault, type Vault } from './vault.ts';

const few = 10_000;
const pagesPerMedian = 200;
const pageSize = 20;
const walkSize = 100;
/** Where the last pages begin. */
const endTokens = pagesPerMedian * pageSize;

const { values: flags } = parseArgs({
  options: {
    tokens: { type: 'string', default: '1000000' },
    engine: { type: 'string', multiple: true, default: Object.keys(engines) },
  },
});
const many = Number(flags.tokens);

/** Asks for one page, from a cursor, and gives the next one. */
type Ask = (vault: Vault, start: string, tokens: number) => Promise<string | undefined>;

interface Question {
  readonly title: string;
  readonly from?: 'middle' | 'end';
  readonly ask: Ask;
}

const list =
  (filter = ''): Ask =>
  (vault, start) =>
    nextOf(vault.send('GET', { path: `/v2/tokens?size=${pageSize}&start=${start}${filter}` }));

const search =
  (queryFor: (serial: number) => string): Ask =>
  (vault, start, tokens) => {
    const query = queryFor(randomInt(Math.floor(tokens / 3)) * 3 + 2);
    const body = JSON.stringify({ query, size: pageSize, start });
    return nextOf(vault.send('POST', { path: '/v2/tokens/search', body }));
  };

const questions: readonly Question[] = [
  { title: 'list, first pages', ask: list() },
  { title: 'list, middle pages', from: 'middle', ask: list() },
  { title: 'list, last pages', from: 'end', ask: list() },
  { title: 'list of a container', ask: list('&container=/pci/') },
  { title: 'list of a type', ask: list('&type=card') },
  { title: 'list of a type in a container', ask: list('&type=card&container=/pci/') },
  { title: 'list by common metadata', ask: list('&metadata.owner=Ada') },
  { title: 'search, one rare term', ask: search((serial) => `data:"${nameOf(serial)}"`) },
  { title: 'search, one common term', ask: search(() => 'metadata.owner:Ada') },
  {
    title: 'search, a rare and a common term',
    ask: search((serial) => `data:"${nameOf(serial)}" AND metadata.owner:Ada`),
  },
  {
    title: 'search, a common term in a container',
    ask: search(() => 'metadata.owner:Ada AND container:"/general/"'),
  },
];

type Cursors = Readonly<Record<'middle' | 'end', string>>;

interface Compared {
  readonly title: string;
  readonly fewMs: number;
  readonly manyMs: number;
}

const columns: readonly Column<Compared>[] = [
  { title: 'page of 20', cell: ({ title }) => title },
  { title: `ms among ${digits(few)}`, cell: ({ fewMs }) => digits(fewMs, 2) },
  { title: `ms among ${digits(many)}`, cell: ({ manyMs }) => digits(manyMs, 2) },
  { title: 'ratio', cell: ({ fewMs, manyMs }) => digits(manyMs / fewMs, 2) },
];

for (const engine of flags.engine) {
  const vault = await startVault(await engineOf(engine)());
  try {
    process.stdout.write(`\n${engine}, medians of ${pagesPerMedian} pages\n\n`);
    process.stdout.write(`${table(columns, await compare(vault))}\n`);
  } finally {
    await vault.close();
  }
}

async function compare(vault: Vault): Promise<readonly Compared[]> {
  const fewMs = await measureAmong(vault, { from: 0, to: few });
  const manyMs = await measureAmong(vault, { from: few, to: many });
  return questions.map(({ title }, at) => ({
    title,
    fewMs: fewMs[at] ?? Number.NaN,
    manyMs: manyMs[at] ?? Number.NaN,
  }));
}

interface Serials {
  readonly from: number;
  readonly to: number;
}

async function measureAmong(vault: Vault, serials: Serials): Promise<readonly number[]> {
  progress(`import of ${digits(serials.to)}`);
  await postLines(bulkTarget(vault.server.url, vault.keys.reveal), linesFor(serials), (line) => {
    if (!line.includes('"status":201')) throw new Error(line.toString('utf8'));
  });
  progress('walk to the middle and the end');
  const cursors = await walk(vault, serials.to);
  const medians: number[] = [];
  // What the compiler gains with every request must not be taken for the price of few tokens.
  for (const question of [...questions, ...questions, ...questions]) {
    await timePages(vault, question, { cursors, tokens: serials.to });
  }
  for (const question of questions) {
    progress(question.title);
    medians.push(await timePages(vault, question, { cursors, tokens: serials.to }));
  }
  return medians;
}

function* linesFor({ from, to }: Serials): Generator<string> {
  for (let serial = from; serial < to; serial += 1) yield JSON.stringify(requestOf(serial));
}

/** Cursors are only had by walking. */
async function walk(vault: Vault, tokens: number): Promise<Cursors> {
  let seen = 0;
  let cursor = '';
  const to = async (place: number) => {
    for (; seen < place; seen += walkSize) {
      const path = `/v2/tokens?size=${walkSize}&start=${cursor}`;
      cursor = (await nextOf(vault.send('GET', { path }))) ?? '';
    }
    return cursor;
  };
  const places = [tokens / 2, tokens - endTokens].toSorted((a, b) => a - b);
  const [first = '', second = ''] = [await to(places[0] ?? 0), await to(places[1] ?? 0)];
  return places[0] === tokens / 2 ? { middle: first, end: second } : { middle: second, end: first };
}

interface Timing {
  readonly cursors: Cursors;
  readonly tokens: number;
}

/** A list that ends sooner is begun again. */
async function timePages(
  vault: Vault,
  { from, ask }: Question,
  { cursors, tokens }: Timing,
): Promise<number> {
  const begin = from === undefined ? '' : cursors[from];
  const times: number[] = [];
  let start = begin;
  while (times.length < pagesPerMedian) {
    const asked = performance.now();
    const next = await ask(vault, start, tokens);
    times.push(performance.now() - asked);
    start = next ?? begin;
  }
  return median(times);
}

async function nextOf(answer: Promise<string>): Promise<string | undefined> {
  return JSON.parse(await answer).pagination.next;
}

function progress(text: string): void {
  process.stderr.write(`${text}\n`);
}

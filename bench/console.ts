/**
 * How the console feels over a list of a million tokens: how long each page takes to its frame and to its data, how long
 * a page of the list takes to turn near its beginning and deep in it, and what the browser holds after many turns.
 */
import { parseArgs } from 'node:util';
import type { CDPSession, Page } from 'playwright-core';
import { startBrowser } from '../tests/support/browser.ts';
import { administratorCode, consolePages } from '../tests/support/console-pages.ts';
import { engineOf } from '../tests/support/engines.ts';
import { newTenant } from '../tests/support/tenant.ts';
import { startVault } from '../tests/support/vault.ts';
import { bulkTarget, postLines } from './lines.ts';
import { digits, median } from './markdown.ts';
import { requestOf } from './mixture.ts';

const { values: flags } = parseArgs({
  options: {
    tokens: { type: 'string', default: '1000000' },
    turns: { type: 'string', default: '500' },
    engine: { type: 'string', default: 'sqlite' },
  },
});
const tokens = Number(flags.tokens);
const turns = Number(flags.turns);
const perPage = 50;

const ends: (() => unknown)[] = [];
const lender = { after: (end: () => unknown) => void ends.push(end) };
const say = (text: string) => void process.stdout.write(`${text}\n`);
try {
  const vault = await startVault(
    lender,
    engineOf(flags.engine === 'postgres' ? 'postgres' : 'sqlite'),
  );
  const tenant = await newTenant(vault);
  await postLines(bulkTarget(vault.url, tenant.key), lines(), (line) => {
    if (!line.includes('"status":201')) throw new Error(line.toString('utf8'));
  });
  const page = await (await startBrowser(lender)).newPage();
  const browser = await page.context().newCDPSession(page);
  await page.goto(`${vault.url}/console#${await administratorCode(tenant)}`);
  await page.getByRole('navigation').waitFor();
  await openEach(page);
  await page.getByRole('link', { name: 'Tokens', exact: true }).click();
  await page.getByText(`1–${perPage}`, { exact: true }).waitFor();
  say(`first pages: ${await turned(page, 20)}; ${await held(browser)}`);
  say(`after ${turns} more turns: ${await turned(page, turns)}; ${await held(browser)}`);
  const deep = Math.floor((tokens / perPage) * 0.95);
  const asked = performance.now();
  await page.goto(`${vault.url}/console/tokens?page=${deep}`);
  await page.getByText(`${digits((deep - 1) * perPage + 1)}–`).waitFor();
  say(`page ${digits(deep)} by its address: ${digits(performance.now() - asked)} ms`);
  say(`pages there: ${await turned(page, 20)}; ${await held(browser)}`);
} finally {
  for (const end of ends.reverse()) await end();
}

function* lines(): Generator<string> {
  for (let serial = 0; serial < tokens; serial += 1) yield JSON.stringify(requestOf(serial));
}

/** From the click on the link to the frame with the heading of the page, and to the one with its data. */
async function openEach(page: Page): Promise<void> {
  for (const name of consolePages) {
    const [frame, data] = (await page.evaluate(`(async () => {
      const link = [...document.querySelectorAll('nav a')].find((one) => one.textContent === ${JSON.stringify(name)});
      const begun = performance.now();
      const until = (isThere) => new Promise((resolve) => {
        const look = () => isThere() ? resolve(performance.now() - begun) : requestAnimationFrame(look);
        look();
      });
      link.click();
      const frame = await until(() => document.querySelector('h1')?.textContent.startsWith(${JSON.stringify(name)}));
      const data = await until(() => !document.querySelector('main [aria-busy=true]'));
      return [frame, data];
    })()`)) as [number, number];
    say(`${name}: frame ${digits(frame)} ms, data ${digits(data)} ms`);
  }
}

/** The median and the longest time from the click to the frame with the next page. */
async function turned(page: Page, count: number): Promise<string> {
  const times = (await page.evaluate(`(async () => {
    const range = () => document.querySelector('.page-turner span').textContent;
    const times = [];
    for (let turn = 0; turn < ${count}; turn += 1) {
      const before = range();
      const begun = performance.now();
      document.querySelector('[aria-keyshortcuts=n]').click();
      while (range() === before) await new Promise(requestAnimationFrame);
      times.push(performance.now() - begun);
    }
    return times;
  })()`)) as number[];
  return `${digits(median(times))} ms a turn, ${digits(Math.max(...times))} at most`;
}

async function held(browser: CDPSession): Promise<string> {
  await browser.send('HeapProfiler.collectGarbage');
  await browser.send('Performance.enable');
  const { metrics } = await browser.send('Performance.getMetrics');
  const of = (name: string) => metrics.find((one) => one.name === name)?.value ?? Number.NaN;
  return `${digits(of('JSHeapUsedSize') / 1e6, 1)} MB of objects, ${digits(of('Nodes'))} nodes`;
}

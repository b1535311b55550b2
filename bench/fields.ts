/**
 * `node bench/fields.ts`: how long card fields take until a customer can type, beside an empty frame of another site, and
 * what they add to the request that creates a token.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { startBrowser } from '../tests/support/browser.ts';
import { openShop } from '../tests/support/shop.ts';
import type { Lender } from '../tests/support/temporary.ts';
import { describeMachine } from './machine.ts';
import { digits, median, table } from './markdown.ts';
import { engineOf } from './storage.ts';
import { startVault } from './vault.ts';

const rounds = 15;
const requests = 40;
const readyMsGoal = 300;
const addedMsGoal = 15;

// biome-ignore lint/suspicious/noExplicitAny: the package is installed only for development
type Page = any;

interface Loaded {
  readonly fields: number;
  readonly empty: number;
}

/** From the first call of a script until each field has its input, and until an empty frame is loaded. */
const inPage = `
  const place = document.querySelector('main');
  let fields;
  async function measureFields(key) {
    const began = performance.now();
    fields = Strongroom.fields({ key });
    const kinds = ['card-number', 'card-expiry', 'card-code', 'text'];
    await Promise.all(kinds.map((kind) => new Promise((done) => {
      const field = fields.create(kind);
      field.addEventListener('ready', done);
      place.append(field);
    })));
    return performance.now() - began;
  }
  async function measureEmpty(src) {
    const began = performance.now();
    await new Promise((done) => {
      const frame = Object.assign(document.createElement('iframe'), { src });
      frame.addEventListener('load', done);
      place.append(frame);
    });
    return performance.now() - began;
  }
  async function measure(key, src, isFieldsFirst) {
    if (isFieldsFirst) return { fields: await measureFields(key), empty: await measureEmpty(src) };
    const empty = await measureEmpty(src);
    return { fields: await measureFields(key), empty };
  }
  async function createToken() {
    const [number, expiry, cvc] = place.children;
    const data = { number, expiration_month: expiry.month, expiration_year: expiry.year, cvc };
    const began = performance.now();
    await fields.tokens.create({ type: 'card', data });
    return performance.now() - began;
  }`;

const ends: (() => unknown)[] = [];
const lender: Lender = { after: (end) => void ends.unshift(end) };
try {
  process.exitCode = await bench();
} finally {
  for (const end of ends) await end();
}

/** @returns 1 where a goal is missed. */
async function bench(): Promise<number> {
  const storage = await engineOf('embedded')();
  // More tokens than a page creates.
  const env = { ...storage.env, STRONGROOM_RATE_LIMITS: 'off' };
  const vault = await startVault({ ...storage, env });
  lender.after(() => vault.close());
  const shop = await openShop(lender);
  const application = {
    name: 'page',
    type: 'public',
    permissions: ['token:create'],
    origins: [shop.origin],
  };
  const body = JSON.stringify(application);
  const created = await vault.send('POST', { path: '/applications', body }, vault.managementKey);
  const { key } = JSON.parse(created);
  const empty = await startEmpty();
  const url = shop.page(`<!doctype html><html lang="en"><title>Shop</title><body><main></main>
    <script src="${vault.server.url}/fields/v1/loader.js" crossorigin="anonymous"></script>
    <script>${inPage}</script>`);
  const browser = await startBrowser(lender);

  const cold: Loaded[] = [];
  const warm: Loaded[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const context = await browser.newContext();
    const page = await context.newPage();
    for (const into of [cold, warm]) {
      await page.goto(url);
      // Each is the first in every second round.
      into.push(await page.evaluate(`measure('${key}', '${empty}', ${round % 2 === 0})`));
    }
    await context.close();
  }

  const page = await (await browser.newContext()).newPage();
  await page.goto(url);
  await page.evaluate(`measure('${key}', '${empty}', true)`);
  const { byFields, byApi } = await measureRequests(page, key);

  const rows = [
    rowOf(
      'Four fields, first visit',
      cold.map(({ fields }) => fields),
      cold.map((one) => one.empty),
    ),
    rowOf(
      'Four fields, files in the cache',
      warm.map(({ fields }) => fields),
      warm.map((one) => one.empty),
    ),
    rowOf('Create a card token', byFields, byApi),
  ];
  const columns = [
    { title: '', cell: ({ name }: Row) => name },
    { title: 'Fields, ms', cell: ({ own }: Row) => digits(own, 1) },
    { title: 'Beside, ms', cell: ({ beside }: Row) => digits(beside, 1) },
    { title: 'Difference, ms', cell: ({ own, beside }: Row) => digits(own - beside, 1) },
    // Of the pages that other work on the machine disturbed least.
    { title: 'Fastest, ms', cell: ({ fastest }: Row) => digits(fastest, 1) },
    { title: 'Beside, fastest, ms', cell: ({ besideFastest }: Row) => digits(besideFastest, 1) },
  ];
  process.stdout.write(
    `${describeMachine('autocannon')}\n- ${browser.browserType().name()} ${browser.version()}\n\n`,
  );
  process.stdout.write(`${table(columns, rows)}\n`);
  const isReached =
    rows.slice(0, 2).every(({ own }) => own <= readyMsGoal) &&
    rows.slice(2).every(({ own, beside }) => own - beside <= addedMsGoal);
  return isReached ? 0 : 1;
}

interface Row {
  readonly name: string;
  readonly own: number;
  /** An empty frame, or the request alone. */
  readonly beside: number;
  readonly fastest: number;
  readonly besideFastest: number;
}

function rowOf(name: string, own: readonly number[], beside: readonly number[]): Row {
  return {
    name,
    own: median(own),
    beside: median(beside),
    fastest: Math.min(...own),
    besideFastest: Math.min(...beside),
  };
}

/** Requests through the fields, and the same ones that the frame of the vault sends, one after the other. */
async function measureRequests(page: Page, key: string) {
  const number = page.frameLocator('strongroom-card-number iframe').locator('input');
  await number.fill('4242424242424242');
  await page.frameLocator('strongroom-card-expiry iframe').locator('input').fill('1230');
  await page.frameLocator('strongroom-card-code iframe').locator('input').fill('123');
  const controller = page.frames()[1];
  const data = {
    number: '4242424242424242',
    expiration_month: 12,
    expiration_year: 2030,
    cvc: '123',
  };
  const body = JSON.stringify({ type: 'card', data });
  const byFields: number[] = [];
  const byApi: number[] = [];
  for (let count = 0; count < requests; count += 1) {
    byFields.push(await page.evaluate('createToken()'));
    const alone = `(async () => {
      const began = performance.now();
      const headers = { 'SVC-API-KEY': '${key}', 'Content-Type': 'application/json' };
      const response = await fetch('/tokens', { method: 'POST', headers, body: ${JSON.stringify(body)} });
      await response.json();
      return performance.now() - began;
    })()`;
    byApi.push(await controller.evaluate(alone));
  }
  return { byFields, byApi };
}

/** A document without anything, of another site than the page. */
async function startEmpty(): Promise<string> {
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>-</title>');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  lender.after(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

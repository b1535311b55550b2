/** Pages with card fields in a browser, and what tests type into them and read of them. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { startBrowser } from './browser.ts';
import { engineOf } from './engines.ts';
import { nextLook } from './poll.ts';
import { openShop, publicApplication, type Shop } from './shop.ts';
import type { Lender } from './temporary.ts';
import { startVault, type TestVault } from './vault.ts';

export const cardNumber = '4242424242424242';
export const allElements = `<strongroom-card-number id="number"></strongroom-card-number>
<strongroom-card-expiry id="expiry"></strongroom-card-expiry>
<strongroom-card-code id="code"></strongroom-card-code>`;

/** Records, in the page, whatever an element says, and calls of `fields` with their results. */
export const recording = (key: string, more = '') => `<script>
window.events = [];
for (const element of document.querySelectorAll('[id]'))
  for (const type of ['ready', 'change', 'focus', 'blur', 'enter', 'error'])
    element.addEventListener(type, ({ detail }) => events.push({ id: element.id, type, detail }));
const byId = (id) => document.getElementById(id);
const failed = ({ code, message, customerMessage, document }) => ({ code, message, customerMessage, document });
const fields = Strongroom.fields({ key: '${key}' ${more}});
const card = () => ({ number: byId('number'), expiration_month: byId('expiry').month,
  expiration_year: byId('expiry').year, cvc: byId('code') });
</script>`;

/** Creates a token of the card in the page. */
export const createCard = "fields.tokens.create({ type: 'card', data: card() })";

/** As long as Playwright itself waits for what does not come. */
const waitMsMax = 30_000;

/** Looks until what it sees is as expected. */
export async function until(look: () => Promise<unknown>, expected: unknown): Promise<void> {
  const end = performance.now() + waitMsMax;
  let seen = await look();
  while (!isDeepStrictEqual(seen, expected) && performance.now() < end) {
    await nextLook();
    seen = await look();
  }
  assert.deepEqual(seen, expected);
}

// biome-ignore lint/suspicious/noExplicitAny: the package is installed only for development
export type Page = any;

export interface Opened {
  readonly page: Page;
  /** What the console says. */
  readonly complaints: string[];
}

export const ready = (page: Page, count: number) =>
  page.waitForFunction(`events.filter(({ type }) => type === 'ready').length >= ${count}`);

export const inputIn = (page: Page, id: string, at = 0) =>
  page.frameLocator(`#${id} iframe`).locator('input').nth(at);

/** The frame of an element, in which scripts of the test run. */
export async function frameOf(page: Page, id: string): Promise<Page> {
  const element = await page.locator(`#${id} iframe`).elementHandle();
  return element.contentFrame();
}

/** Clicks an input, and waits until keys reach its frame: the browser tells the page then. */
export async function enter(page: Page, id: string): Promise<void> {
  await inputIn(page, id).click();
  await page.waitForFunction(`document.activeElement?.parentElement?.id === '${id}'`);
}

/** Until the frames have handled whatever their elements told them before. */
export const settled = (page: Page) =>
  page.evaluate(`Promise.all(['number', 'expiry', 'code'].map((id) => new Promise((done) => {
    byId(id).addEventListener('change', done, { once: true });
    byId(id).clear();
  })))`);

/** As a person does, with Tab between the fields. */
export async function typeCard(page: Page): Promise<void> {
  await ready(page, 3);
  await settled(page);
  await enter(page, 'number');
  await page.keyboard.type(cardNumber);
  await page.keyboard.press('Tab');
  await page.keyboard.type('1230');
  await page.keyboard.press('Tab');
  await page.keyboard.type('987');
}

/** Whole numbers, and their parts beyond the first eight and the last four digits, in any spelling. */
export function assertNoDigits(text: string): void {
  const plain = text.replace(/[\s-]/g, '');
  assert.ok(!plain.includes(cardNumber), 'the number');
  assert.ok(!plain.includes(cardNumber.slice(0, 13)), 'its beginning');
  const dates = /"(?:created_at|expires_at)":"[^"]*"/g;
  assert.ok(!/\b987\b/.test(text.replace(dates, '')), 'the code');
}

export interface OpenOptions {
  readonly prepare?: (page: Page) => Promise<unknown>;
  readonly [name: string]: unknown;
}

export interface CardFields {
  readonly vault: TestVault;
  readonly shop: Shop;
  /** Of a public application that lists the shop. */
  readonly key: string;
  // biome-ignore lint/suspicious/noExplicitAny: the package is installed only for development
  readonly browser: any;
  /**
   * Each page has a context of its own: storage, workers and permissions are not shared. Of the options, `prepare` is
   * for what happens before the page is loaded.
   */
  open(t: TestContext, body: string, options?: OpenOptions): Promise<Opened>;
}

export async function startCardFields(
  lender: Lender,
  environment: Readonly<Record<string, string>> = {},
): Promise<CardFields> {
  const vault = await startVault(lender, engineOf('sqlite'), { environment });
  const shop = await openShop(lender);
  const key = await publicApplication(vault, [shop.origin], ['token:create', 'token:update']);
  const browser = await startBrowser(lender);
  return {
    vault,
    shop,
    key,
    browser,
    open: async (t, body, { prepare, ...options } = {}) => {
      const context = await browser.newContext(options);
      t.after(() => context.close());
      const page = await context.newPage();
      const complaints: string[] = [];
      page.on('console', (message: { text(): string }) => complaints.push(message.text()));
      page.on('pageerror', (error: Error) => complaints.push(error.message));
      await prepare?.(page);
      await page.goto(body.startsWith('http') ? body : shop.page(body));
      return { page, complaints };
    },
  };
}

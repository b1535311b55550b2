/** Pages of the console in a browser, for tests. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before } from 'node:test';
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { createAdministratorLink } from '../../src/access/people/links.ts';
import { perform } from '../../src/rules/operation.ts';
import { startBrowser } from './browser.ts';
import type { Engine } from './engines.ts';
import { type TestTenant, tenantsOf } from './tenant.ts';
import type { TestVaultOptions } from './vault.ts';

/** Under load on few cores, a page may wait for its turn. */
const patienceMs = 60_000;

/** The code of a link for the administrator, as the operator's command prints it. */
export async function administratorCode({ id, vault: { running } }: TestTenant): Promise<string> {
  const { vault } = running;
  const tenant = await vault.tenants.find(id);
  if (!tenant) throw new Error('the tenant is gone');
  const operator = { tenant, application: null };
  const linking = createAdministratorLink(vault, operator);
  const { body } = await perform({ store: vault.store, actor: operator }, linking);
  return (body as { readonly code: string }).code;
}

export interface WatchedPage {
  readonly page: Page;
  /** What the page said that it should not: errors, refused scripts, dialogs. */
  readonly complaints: string[];
}

export async function newWatchedPage(context: BrowserContext): Promise<WatchedPage> {
  const page = await context.newPage();
  page.setDefaultTimeout(patienceMs);
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('dialog', (dialog) => complaints.push(`dialog ${dialog.message()}`));
  page.on('console', (message) => {
    // Before signing in, the session is asked for and there is none.
    if (message.type() === 'error' && !/status of 40[134]/.test(message.text())) {
      complaints.push(message.text());
    }
  });
  return { page, complaints };
}

/** The first button of that name. */
export function button(page: Page, name: string) {
  return page.getByRole('button', { name, exact: true }).first();
}

/** The card of each desk. */
export const cardNumber = '4242424242424242';
/** A name that runs as a script wherever it is written as HTML. */
export const hostile = '<img src=x onerror=alert(1)><script>alert(1)</script>';

/** The pages of the navigation. */
export const consolePages = [
  'Overview',
  'Tokens',
  'Applications',
  'Proxies',
  'Reactors',
  'Webhooks',
  'Approvals',
  'Log',
  'Keys',
  'People',
  'Settings and quotas',
  'Problems',
] as const;

export interface Desk extends WatchedPage {
  readonly tenant: TestTenant;
  readonly context: BrowserContext;
}

export interface Console {
  readonly browser: () => Browser;
  readonly newTenant: () => Promise<TestTenant>;
  /** A tenant with a card, and its administrator signed in by the link that the operator's command prints. */
  newDesk(options?: BrowserContextOptions): Promise<Desk>;
}

/** A vault with a console, and a browser, for the tests of a suite. */
export function consoleOf(engine: Engine, options: TestVaultOptions = {}): Console {
  const newTenant = tenantsOf(engine, options);
  const borrowed: (() => unknown)[] = [];
  let started: Browser | undefined;
  before(async () => {
    started = await startBrowser({ after: (give) => borrowed.push(give) });
  });
  after(async () => {
    for (const give of borrowed) await give();
  });
  const browser = () => {
    assert.ok(started);
    return started;
  };
  return {
    browser,
    newTenant,
    newDesk: async (contextOptions) => {
      const tenant = await newTenant();
      await tenant.token({
        id: `card-${tenant.id}`,
        type: 'card',
        data: { number: cardNumber, expiration_month: 12, expiration_year: 2030 },
        metadata: { note: hostile },
        search_indexes: ['{{ data.number | last4 }}'],
      });
      const context = await browser().newContext(contextOptions);
      const watched = await newWatchedPage(context);
      await watched.page.goto(`${tenant.vault.url}/console#${await administratorCode(tenant)}`);
      await watched.page.getByRole('navigation').waitFor({ state: 'attached' });
      return { tenant, context, ...watched };
    },
  };
}

/** By the link in the navigation. */
export async function openPage(page: Page, name: (typeof consolePages)[number]): Promise<void> {
  await page.getByRole('navigation').getByRole('link', { name, exact: true }).click();
  await page.getByRole('heading', { level: 1, name }).waitFor();
}

/** Another page of the console, without loading it again. */
export async function goTo(page: Page, path: string): Promise<void> {
  const state = `history.pushState(null, '', ${JSON.stringify(`/console${path}`)})`;
  await page.evaluate(`${state}; dispatchEvent(new PopStateEvent('popstate')); 0`);
}

/** What axe finds on the page as it is: one line for each kind, with the first element. */
export async function violationsOn(page: Page): Promise<readonly string[]> {
  const path = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
  if (!(await page.evaluate("typeof axe === 'object'")))
    await page.evaluate(readFileSync(path, 'utf8'));
  const result = await page.evaluate("axe.run(document, { resultTypes: ['violations'] })");
  const { violations } = result as { violations: { id: string; nodes: { html: string }[] }[] };
  return violations.map(({ id, nodes }) => `${id} ${nodes[0]?.html}`);
}

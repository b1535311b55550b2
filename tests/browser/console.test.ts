/** The console in a browser: each page does its main task, and what tenants store runs nowhere and stays nowhere. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { startBrowser, withoutBrowser } from '../support/browser.ts';
import { administratorCode, button, newWatchedPage } from '../support/console-pages.ts';
import { answer } from '../support/destination.ts';
import { installed, reasonWithout } from '../support/development-packages.ts';
import { onBothEngines } from '../support/engines.ts';
import { takePicture } from '../support/pictures.ts';
import { startCalled } from '../support/proxy-calls.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';
import { routesOf } from '../support/vault.ts';

const axe = await installed('axe-core');
const skip = reasonWithout({ 'axe-core': axe }) || withoutBrowser;
const { destination, url: destinationUrl, environment } = await startCalled({ after });

const number = '4242424242424242';
/** A name that runs as a script wherever it is written as HTML. */
const hostile = '<img src=x onerror=alert(1)><script>alert(1)</script>';

const lastFour = {
  description: 'Last four digits',
  priority: 1,
  container: '/pci/',
  permissions: ['token:read'],
  transform: 'mask',
};

const pages = [
  'Overview',
  'Tokens',
  'Applications',
  'Proxies',
  'Reactors',
  'Webhooks',
  'Log',
  'Keys',
  'People',
  'Settings and quotas',
  'Problems',
] as const;

interface Desk {
  readonly tenant: TestTenant;
  readonly context: BrowserContext;
  readonly page: Page;
  /** What the page said that it should not: errors, refused scripts, dialogs. */
  readonly complaints: string[];
}

onBothEngines('the console', (engine) => {
  if (skip) {
    test('the console', { skip }, () => undefined);
    return;
  }
  const newTenant = tenantsOf(engine, {
    environment: { ...environment, STRONGROOM_REACTORS: 'on' },
  });
  let browser: Browser | undefined;
  const borrowed: (() => unknown)[] = [];
  before(async () => {
    browser = await startBrowser({ after: (give) => borrowed.push(give) });
  });
  after(async () => {
    for (const give of borrowed) await give();
  });

  /** A tenant with a card, and its administrator signed in by the link that the operator's command prints. */
  async function newDesk(): Promise<Desk> {
    assert.ok(browser);
    const tenant = await newTenant();
    await tenant.token({
      id: `card-${tenant.id}`,
      type: 'card',
      data: { number, expiration_month: 12, expiration_year: 2030 },
      metadata: { note: hostile },
      search_indexes: ['{{ data.number | last4 }}'],
    });
    const context = await browser.newContext();
    const { page, complaints } = await newWatchedPage(context);
    await page.goto(`${tenant.vault.url}/console#${await administratorCode(tenant)}`);
    await page.getByRole('navigation').waitFor();
    return { tenant, context, page, complaints };
  }

  const open = async (page: Page, name: (typeof pages)[number]) => {
    await page.getByRole('navigation').getByRole('link', { name, exact: true }).click();
    await page.getByRole('heading', { level: 1, name }).waitFor();
  };

  test('the list of tokens shows what each holds, masked', async () => {
    assert.ok(browser);
    const tenant = await newTenant();
    const { managementKey: key } = tenant;
    await tenant.send('PUT', '/tenants/self', { key, body: { name: 'Coffee shop' } });
    const cards = [
      ['ada', '4242424242424242'],
      ['grace', '5555555555554444'],
      ['edsger', '378282246310005'],
      ['barbara', '6011111111111117'],
    ] as const;
    for (const [name, digits] of cards) {
      await tenant.token({
        id: `card-of-${name}`,
        type: 'card',
        data: { number: digits, expiration_month: 12, expiration_year: 2030 },
        metadata: { customer: name },
      });
    }
    const context = await browser.newContext({ viewport: { width: 1200, height: 500 } });
    const { page } = await newWatchedPage(context);
    await page.goto(`${tenant.vault.url}/console#${await administratorCode(tenant)}`);
    await page.getByRole('navigation').waitFor();
    await open(page, 'Tokens');
    for (const [name, digits] of cards) {
      await page.getByRole('link', { name: `card-of-${name}` }).waitFor();
      await page.getByText(digits.slice(-4)).first().waitFor();
      assert.ok(!(await page.content()).includes(digits));
    }
    await takePicture(page, 'console-tokens');
    await context.close();
  });

  test('a card is found by its last four digits, revealed with a reason, and the log says who did it', async () => {
    const { tenant, page, complaints } = await newDesk();
    assert.ok(!page.url().includes('#'), 'the code stays in no address');
    await open(page, 'Tokens');
    await page.getByRole('searchbox').fill('4242');
    await page.getByRole('link', { name: `card-${tenant.id}` }).click();
    await page.getByText('XXXXXXXXXXXX4242').waitFor();
    assert.ok(!(await page.content()).includes(number));
    await button(page, 'Reveal').click();
    await page.getByLabel('Reason').fill('chargeback 4711');
    await page.getByRole('dialog').getByRole('button', { name: 'Reveal' }).click();
    await page.getByTestId('revealed').getByText(number).waitFor();
    // Where nobody looks at the page, it holds no value.
    await page.evaluate(
      "document.dispatchEvent(new Event('beforeprint')); window.dispatchEvent(new Event('beforeprint'))",
    );
    await page.getByTestId('revealed').waitFor({ state: 'detached' });
    assert.ok(!(await page.content()).includes(number));
    const stored = await page.evaluate(
      'JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage), history.state, location.href])',
    );
    assert.ok(!String(stored).includes('4242'), 'neither storage nor history holds any of it');
    await open(page, 'Log');
    await page.getByLabel('Shown').selectOption('revealed');
    await page.getByText('Token retrieved: chargeback 4711').waitFor();
    await page.getByText('Administrator as Console').first().waitFor();
    assert.deepEqual(complaints, []);
  });

  test('a rule is tried before it is saved, and a key is rotated with overlap', async () => {
    const { tenant, page, complaints } = await newDesk();
    await tenant.application({ name: 'Support desk', rules: [lastFour] });
    await open(page, 'Applications');
    await button(page, 'Create application').click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill(hostile);
    await dialog.getByRole('button', { name: 'Create', exact: true }).click();
    const first = await page.getByTestId('secret').innerText();
    assert.match(first, /^key_test_pvt_/);
    await dialog.getByRole('link', { name: 'Open the application' }).click();
    await page.getByRole('heading', { level: 1, name: hostile }).waitFor();
    await button(page, 'Create key').click();
    await page.getByTestId('secret').waitFor();
    assert.notEqual(await page.getByTestId('secret').innerText(), first);
    await button(page, 'Close').click();
    await open(page, 'Applications');
    await page.getByRole('link', { name: 'Support desk' }).click();
    await page.getByRole('button', { name: /Last four digits/ }).click();
    await page.getByLabel('Transform').selectOption('reveal');
    await page.getByLabel('Token id or container').fill('/pci/high/');
    await button(page, 'Explain').click();
    const explained = page.getByTestId('explained');
    await explained.getByText('sees it masked').waitFor();
    await explained.getByText('sees the value').waitFor();
    await button(page, 'Save rules').click();
    await button(page, 'Undo').waitFor();
    const list = await tenant.send('GET', '/applications', { key: tenant.managementKey });
    const saved = list.body.data.find(({ name }: { name: string }) => name === 'Support desk');
    assert.equal(saved.rules[0].transform, 'reveal');
    assert.deepEqual(complaints, []);
  });

  test('a failed delivery is sent again, and a call of a proxy shows what was sent without values', async () => {
    const { tenant, page, complaints } = await newDesk();
    destination.behave(answer(500, [], 'down'));
    await open(page, 'Webhooks');
    await button(page, 'Create webhook').click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('orders');
    await dialog.getByLabel('Address', { exact: true }).fill(`${destinationUrl}/events`);
    await dialog.getByRole('button', { name: 'Create', exact: true }).click();
    await page.getByTestId('secret').waitFor();
    await button(page, 'Close').click();
    await button(page, 'Send test event').click();
    const again = page.getByRole('button', { name: /^Send again/ }).first();
    await again.waitFor();
    const before = destination.requests.length;
    destination.behave(answer(200, ['Content-Type', 'text/html'], hostile));
    await again.click();
    await page.getByText('Sent again', { exact: true }).waitFor();
    await open(page, 'Proxies');
    await button(page, 'Create proxy').click();
    await dialog.getByLabel('Name').fill('psp');
    await dialog.getByLabel('Destination').fill(destinationUrl);
    await dialog.getByRole('button', { name: 'Create', exact: true }).click();
    await page.getByLabel('Body').fill(`{"number": "{{ card-${tenant.id} | json: '$.number' }}"}`);
    await page.getByLabel('Reason').fill('trial of the proxy');
    await button(page, 'Send').click();
    const tried = page.getByTestId('tried');
    await tried.getByText(hostile).waitFor();
    assert.ok(!(await tried.innerText()).includes(number));
    assert.ok(destination.requests.length > before);
    assert.ok(destination.requests.some(({ body }) => body.toString().includes(number)));
    assert.deepEqual(complaints, []);
  });

  test('people are let in and go, keys rotate, code runs, and settings are saved', async () => {
    const { page, complaints } = await newDesk();
    await open(page, 'People');
    await button(page, 'Add person').click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill(hostile);
    await dialog.getByText('Console').first().click();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await button(page, 'Create sign-in link').click();
    assert.match(await page.getByTestId('secret').innerText(), /\/console#/);
    await button(page, 'Close').click();
    await button(page, 'Remove person').click();
    await dialog.getByLabel(/^Type/).fill(hostile);
    await dialog.getByRole('button', { name: 'Remove person' }).click();
    await page.getByRole('link', { name: 'Administrator' }).waitFor();
    await open(page, 'Keys');
    await button(page, 'Rotate data key').click();
    await page.getByText('Rotation started').waitFor();
    await open(page, 'Reactors');
    await button(page, 'Create reactor').click();
    await dialog.getByLabel('Name').fill('greeting');
    await dialog.getByRole('button', { name: 'Create', exact: true }).click();
    await page.getByRole('textbox', { name: 'Code' }).waitFor();
    await page.getByLabel('Reason').fill('trial of the code');
    await button(page, 'Run').click();
    await page.getByTestId('result').getByText('Hello Ada').waitFor();
    await open(page, 'Settings and quotas');
    await page.getByLabel('Name').fill('A tenant of the console');
    await button(page, 'Save').click();
    await button(page, 'Undo').waitFor();
    assert.deepEqual(complaints, []);
  });

  test('no page has a violation, light or dark, scrolls sideways on a phone, or uses a route of its own', async () => {
    const { tenant, page, complaints } = await newDesk();
    const requested = new Set<string>();
    page.on('request', (sent) => {
      const { origin, pathname } = new URL(sent.url());
      if (sent.url().startsWith('data:')) return;
      requested.add(`${sent.method()} ${origin === tenant.vault.url ? pathname : sent.url()}`);
    });
    const path = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
    const source = readFileSync(path, 'utf8');
    await page.evaluate(source);
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      for (const name of pages) {
        await open(page, name);
        await page.locator('main [aria-busy=true]').waitFor({ state: 'detached' });
        const result = await page.evaluate("axe.run(document, { resultTypes: ['violations'] })");
        const { violations } = result as {
          violations: { id: string; nodes: { html: string }[] }[];
        };
        const found = violations.map(({ id, nodes }) => `${id} ${nodes[0]?.html}`);
        assert.deepEqual(found, [], `${name} ${colorScheme}`);
      }
    }
    await page.setViewportSize({ width: 390, height: 800 });
    for (const name of pages) {
      await button(page, 'Menu').click();
      await open(page, name);
      assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 390, name);
    }
    const declared = (await routesOf(tenant.vault)).map(
      ({ method, path: pattern }) => new RegExp(`^${method} ${pattern.replace(/:\w+/g, '[^/]+')}$`),
    );
    const own = [...requested].filter((one) => !declared.some((route) => route.test(one)));
    assert.deepEqual(own, [], 'every request is one that any program can send with a key');
    assert.ok(requested.size > pages.length);
    assert.deepEqual(complaints, []);
  });

  test('whoever signs out, or whose session ends, sees nothing of the page that was open', async () => {
    const { tenant, page } = await newDesk();
    await open(page, 'Tokens');
    await button(page, 'Sign out').click();
    await page.getByRole('heading', { name: 'Sign in to the vault' }).waitFor();
    assert.ok(!(await page.content()).includes('XXXXXXXXXXXX4242'));
    await page.goBack();
    await page.getByRole('heading', { name: 'Sign in to the vault' }).waitFor();
    assert.deepEqual(await tenant.rows('console_sessions'), []);
  });
});

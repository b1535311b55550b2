/** The console in a browser: each page does its main task, and what tenants store runs nowhere and stays nowhere. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Page } from 'playwright-core';
import { withoutBrowser } from '../support/browser.ts';
import {
  administratorCode,
  button,
  cardNumber,
  consoleOf,
  consolePages,
  goTo,
  hostile,
  newWatchedPage,
  openPage,
  violationsOn,
} from '../support/console-pages.ts';
import { answer } from '../support/destination.ts';
import { installed, reasonWithout } from '../support/development-packages.ts';
import { onBothEngines } from '../support/engines.ts';
import { takePicture } from '../support/pictures.ts';
import { startCalled } from '../support/proxy-calls.ts';
import type { TestTenant } from '../support/tenant.ts';
import { routesOf } from '../support/vault.ts';

const axe = await installed('axe-core');
const skip = reasonWithout({ 'axe-core': axe }) || withoutBrowser;
const { destination, url: destinationUrl, environment } = await startCalled({ after });

const lastFour = {
  description: 'Last four digits',
  priority: 1,
  container: '/pci/',
  permissions: ['token:read'],
  transform: 'mask',
};

onBothEngines('the console', (engine) => {
  if (skip) {
    test('the console', { skip }, () => undefined);
    return;
  }
  const { browser, newTenant, newDesk } = consoleOf(engine, {
    environment: { ...environment, STRONGROOM_REACTORS: 'on' },
  });

  test('the list of tokens shows what each holds, masked', async () => {
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
    const context = await browser().newContext({ viewport: { width: 1200, height: 500 } });
    const { page } = await newWatchedPage(context);
    await page.goto(`${tenant.vault.url}/console#${await administratorCode(tenant)}`);
    await page.getByRole('navigation').waitFor();
    await openPage(page, 'Tokens');
    for (const [name, digits] of cards) {
      await page.getByRole('link', { name: `card-of-${name}` }).waitFor();
      await page.getByText(digits.slice(-4)).first().waitFor();
      assert.ok(!(await page.content()).includes(digits));
    }
    await takePicture(page, 'console-tokens');
    await context.close();
  });

  test('a long list shows and holds one page at a time, whose number is in the address', async () => {
    const { tenant, page, complaints } = await newDesk();
    const made = Array.from({ length: 119 }, (_, at) =>
      tenant.token({
        type: 'token',
        data: `${at}`,
        metadata: { list: at < 60 ? 'long' : 'short' },
      }),
    );
    await Promise.all(made);
    const rows = page.locator('tbody tr');
    const shows = async (range: string, count: number) => {
      await page.getByText(range, { exact: true }).waitFor();
      assert.equal(await rows.count(), count, `the rows of ${range} alone`);
    };
    await openPage(page, 'Tokens');
    await shows('1–50', 50);
    await button(page, 'Next page').click();
    await shows('51–100', 50);
    const ids = await rows.allInnerTexts();
    assert.equal(new URL(page.url()).search, '?page=2');
    await page.reload();
    await shows('51–100', 50);
    assert.deepEqual(await rows.allInnerTexts(), ids, 'the number alone leads to the page as well');
    await page.keyboard.press('n');
    await shows('101–120', 20);
    assert.ok(await button(page, 'Next page').isDisabled());
    await page.keyboard.press('p');
    await shows('51–100', 50);
    await page.goBack();
    await shows('101–120', 20);
    await page.getByLabel('Type').selectOption('token');
    await shows('1–50', 50);
    const searched = page.waitForResponse(/\/tokens\/search$/);
    await page.getByRole('searchbox').fill('metadata.list:long');
    await searched;
    await page.locator('main [aria-busy=true]').waitFor({ state: 'detached' });
    await shows('1–50', 50);
    await button(page, 'Next page').click();
    await shows('51–60', 10);
    assert.deepEqual(await violationsOn(page), []);
    assert.deepEqual(complaints, []);
  });

  test('a card is found by its last four digits, revealed with a reason, and the log says who did it', async () => {
    const { tenant, page, complaints } = await newDesk();
    assert.ok(!page.url().includes('#'), 'the code stays in no address');
    await openPage(page, 'Tokens');
    await page.getByRole('searchbox').fill('4242');
    await page.getByRole('link', { name: `card-${tenant.id}` }).click();
    await page.getByText('XXXXXXXXXXXX4242').waitFor();
    assert.ok(!(await page.content()).includes(cardNumber));
    await button(page, 'Reveal').click();
    await page.getByLabel('Reason').fill('chargeback 4711');
    await page.getByRole('dialog').getByRole('button', { name: 'Reveal' }).click();
    await page.getByTestId('revealed').getByText(cardNumber).waitFor();
    // Where nobody looks at the page, it holds no value.
    await page.evaluate(
      "document.dispatchEvent(new Event('beforeprint')); window.dispatchEvent(new Event('beforeprint'))",
    );
    await page.getByTestId('revealed').waitFor({ state: 'detached' });
    assert.ok(!(await page.content()).includes(cardNumber));
    const stored = await page.evaluate(
      'JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage), history.state, location.href])',
    );
    assert.ok(!String(stored).includes('4242'), 'neither storage nor history holds any of it');
    await openPage(page, 'Log');
    await page.getByLabel('Shown').selectOption('revealed');
    await page.getByText('Token retrieved: chargeback 4711').waitFor();
    await page.getByText('Administrator as Console').first().waitFor();
    assert.deepEqual(complaints, []);
  });

  test('a rule is tried before it is saved, and a key is rotated with overlap', async () => {
    const { tenant, page, complaints } = await newDesk();
    await tenant.application({ name: 'Support desk', rules: [lastFour] });
    await openPage(page, 'Applications');
    await button(page, 'Create application').click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill(hostile);
    await dialog.getByRole('button', { name: 'Create', exact: true }).click();
    const first = await page.getByTestId('secret').innerText();
    assert.match(first, /^key_test_pvt_/);
    await dialog.getByRole('button', { name: 'Open the application' }).click();
    await page.getByRole('heading', { level: 1, name: hostile }).waitFor();
    await button(page, 'Create key').click();
    await page.getByTestId('secret').waitFor();
    assert.notEqual(await page.getByTestId('secret').innerText(), first);
    await button(page, 'Close').click();
    await openPage(page, 'Applications');
    await page.getByRole('link', { name: 'Support desk' }).click();
    await page.getByRole('button', { name: /Last four digits/ }).click();
    await page.getByLabel('Transform').selectOption('reveal');
    await page.getByLabel('Token id or container').fill('/pci/high/');
    await button(page, 'Explain').click();
    const explained = page.getByTestId('explained');
    await explained.getByText('sees it masked').waitFor();
    await explained.getByText('sees the value').waitFor();
    await takePicture(explained, 'console-explain');
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
    await openPage(page, 'Webhooks');
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
    await page.getByText('will be retried').waitFor();
    const before = destination.requests.length;
    destination.behave(answer(200, ['Content-Type', 'text/html'], hostile));
    await again.click();
    await page.getByText('Sent again', { exact: true }).waitFor();
    await openPage(page, 'Proxies');
    await button(page, 'Create proxy').click();
    await dialog.getByLabel('Name').fill('psp');
    await dialog.getByLabel('Destination').fill(destinationUrl);
    await dialog.getByRole('button', { name: 'Create', exact: true }).click();
    await page.getByLabel('Body').fill(`{"number": "{{ card-${tenant.id} | json: '$.number' }}"}`);
    await page.getByLabel('Reason').fill('trial of the proxy');
    await button(page, 'Send').click();
    const tried = page.getByTestId('tried');
    await tried.getByText(hostile).waitFor();
    assert.ok(!(await tried.innerText()).includes(cardNumber));
    assert.ok(destination.requests.length > before);
    assert.ok(destination.requests.some(({ body }) => body.toString().includes(cardNumber)));
    assert.deepEqual(complaints, []);
  });

  test('people are let in and go, keys rotate, code runs, and settings are saved', async () => {
    const { page, complaints } = await newDesk();
    await openPage(page, 'People');
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
    await page.getByRole('link', { name: 'Administrator', exact: true }).waitFor();
    await openPage(page, 'Keys');
    await button(page, 'Rotate data key').click();
    await page.getByText('Rotation started').waitFor();
    await openPage(page, 'Reactors');
    await button(page, 'Create reactor').click();
    await dialog.getByLabel('Name').fill('greeting');
    await dialog.getByRole('button', { name: 'Create', exact: true }).click();
    await page.getByRole('textbox', { name: 'Code' }).waitFor();
    await page.getByLabel('Reason').fill('trial of the code');
    await button(page, 'Run').click();
    await page.getByTestId('result').getByText('Hello Ada').waitFor();
    await openPage(page, 'Settings and quotas');
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
    const details = await detailsOf(tenant);
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      for (const name of consolePages) {
        await openPage(page, name);
        await check(page, `${name} ${colorScheme}`);
      }
      for (const path of details) {
        await goTo(page, path);
        await check(page, `${path} ${colorScheme}`);
      }
    }
    await page.setViewportSize({ width: 390, height: 800 });
    // Of the page, and of what is cut off in its tables.
    const widths = `[document.documentElement.scrollWidth, ...[...document.querySelectorAll('.table')]
      .filter((table) => table.scrollWidth > table.clientWidth).map((table) => table.textContent)]`;
    for (const name of consolePages) {
      await button(page, 'Menu').click();
      await openPage(page, name);
      assert.deepEqual(await page.evaluate(widths), [390], name);
    }
    for (const path of details) {
      await goTo(page, path);
      await check(page, `${path} on a phone`);
      assert.deepEqual(await page.evaluate(widths), [390], path);
    }
    const declared = (await routesOf(tenant.vault)).map(
      ({ method, path: pattern }) => new RegExp(`^${method} ${pattern.replace(/:\w+/g, '[^/]+')}$`),
    );
    const served = [...declared, /^GET \/assets\//, /^\w+ \/console\/session\b/];
    const own = [...requested].filter((one) => !served.some((route) => route.test(one)));
    assert.deepEqual(own, [], 'but for signing in, every request is one that any program can send');
    assert.ok(requested.size > consolePages.length);
    assert.deepEqual(complaints, []);
  });

  async function check(page: Page, name: string): Promise<void> {
    await page.getByRole('heading', { level: 1 }).first().waitFor();
    await page.locator('main [aria-busy=true]').first().waitFor({ state: 'detached' });
    assert.deepEqual(await violationsOn(page), [], name);
  }

  /** A page of each kind that the navigation does not name, and each form. */
  async function detailsOf(tenant: TestTenant): Promise<readonly string[]> {
    const made = async (path: string, body: unknown): Promise<string> => {
      const one = await tenant.send('POST', path, { key: tenant.managementKey, body });
      assert.equal(one.status, 201, one.text);
      return `${path}/${one.body.id}`;
    };
    const url = `${destinationUrl}/events`;
    const application = await made('/applications', {
      name: 'a',
      type: 'private',
      rules: [lastFour],
    });
    const webhook = await made('/webhooks', { name: 'w', url, events: ['token.created'] });
    await tenant.send('POST', `${webhook}/test`, { key: tenant.managementKey });
    const forms = ['tokens', 'applications', 'proxies', 'reactors', 'webhooks', 'people'];
    return [
      ...forms.map((list) => `/${list}?dialog=create`),
      ...['reveal', 'metadata', 'delete', 'copy'].map(
        (name) => `/tokens/card-${tenant.id}?dialog=${name}`,
      ),
      '/log?dialog=verify',
      '/?over=find',
      '/?over=shortcuts',
      `/tokens/card-${tenant.id}`,
      application,
      await made('/proxies', { name: 'p', destination_url: destinationUrl }),
      await made('/reactors', { name: 'r', code: `module.exports = () => ({${' '.repeat(400)}})` }),
      webhook,
      await made('/people', { name: 'Ada', applications: [application.split('/').at(-1)] }),
      '/account',
      '/no-such-page',
    ];
  }

  test('the sign-in page has no violation, and the first page is 150 kB at most', async () => {
    const tenant = await newTenant();
    for (const colorScheme of ['light', 'dark'] as const) {
      for (const width of [1280, 390]) {
        const viewport = { width, height: 800 };
        const context = await browser().newContext({ colorScheme, viewport });
        const { page, complaints } = await newWatchedPage(context);
        await page.goto(`${tenant.vault.url}/console`);
        await page.getByLabel('Or paste the link here').waitFor();
        await check(page, `sign-in ${colorScheme} ${width}`);
        assert.equal(await page.evaluate('document.documentElement.scrollWidth'), width);
        const sizes = `['navigation', 'resource'].flatMap((kind) => performance.getEntriesByType(kind))
          .filter(({ name }) => !name.startsWith('data:')).map((one) => one.encodedBodySize)`;
        const received = (await page.evaluate(sizes)) as readonly number[];
        const bytes = received.reduce((sum, size) => sum + size, 0);
        assert.ok(received.length >= 3 && bytes > 10_000 && bytes <= 150_000, `${bytes} bytes`);
        assert.deepEqual(complaints, []);
        await context.close();
      }
    }
  });

  test('whoever signs out, or whose session ends, sees nothing of the page that was open', async () => {
    const { tenant, page } = await newDesk();
    await openPage(page, 'Tokens');
    await button(page, 'Sign out').click();
    await page.getByRole('heading', { name: 'Sign in to the vault' }).waitFor();
    assert.ok(!(await page.content()).includes('XXXXXXXXXXXX4242'));
    await page.goBack();
    await page.getByRole('heading', { name: 'Sign in to the vault' }).waitFor();
    assert.deepEqual(await tenant.rows('console_sessions'), []);
  });
});

/** Addresses of the console: what is open has one, a link leads to it, and what is typed is in none. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { withoutBrowser } from '../support/browser.ts';
import { button, consoleOf, goTo, openPage } from '../support/console-pages.ts';
import { onBothEngines } from '../support/engines.ts';
import type { TestTenant } from '../support/tenant.ts';

const typed = 'typed-and-in-no-address';

onBothEngines('addresses of the console', (engine) => {
  if (withoutBrowser) {
    test('addresses of the console', { skip: withoutBrowser }, () => undefined);
    return;
  }
  const { newDesk } = consoleOf(engine);

  /** Each dialog: its page, what opens it, and its title. */
  async function dialogsOf(tenant: TestTenant) {
    const { body: list } = await tenant.send('GET', '/applications', { key: tenant.managementKey });
    const application = list.data.find(
      ({ type, keys }: { type: string; keys: [] }) => type === 'private' && keys.length > 0,
    );
    const { body: people } = await tenant.send('GET', '/people', { key: tenant.managementKey });
    const person = people.data[0];
    const token = `/tokens/card-${tenant.id}`;
    return [
      ['/tokens', 'Create token', 'Create token'],
      ['/applications', 'Create application', 'Create application'],
      ['/proxies', 'Create proxy', 'Create proxy'],
      ['/reactors', 'Create reactor', 'Create reactor'],
      ['/webhooks', 'Create webhook', 'Create webhook'],
      ['/people', 'Add person', 'Add person'],
      [token, 'Reveal', 'Reveal the data'],
      [token, 'Edit', 'Metadata'],
      [token, 'Delete', 'Delete the token'],
      [token, 'Copy as', 'The same request elsewhere'],
      [`/applications/${application.id}`, 'Delete', 'Delete the application'],
      [`/applications/${application.id}`, /^Delete key/, 'Delete key'],
      [`/people/${person.id}`, 'Edit', 'Edit'],
      [`/people/${person.id}`, 'Remove person', 'Remove person'],
      ['/log', 'Verify', 'Verify the log'],
      ['/keys', /^Find anything/, 'Find anything'],
    ] as const;
  }

  test('a dialog is opened by its link, and closed by the way back, which leads no further', async () => {
    const { tenant, page, complaints } = await newDesk();
    for (const [path, opener, title] of await dialogsOf(tenant)) {
      await goTo(page, path);
      const open = page.getByRole('button', { name: opener, exact: true }).first();
      const dialog = page.getByRole('dialog', { name: title, exact: true });
      await open.click();
      await dialog.waitFor();
      const address = page.url();
      assert.notEqual(pathOf(page), `/console${path}`, title);
      await type(page);
      assert.ok(!page.url().includes(typed), title);
      await page.goBack();
      await dialog.waitFor({ state: 'detached' });
      assert.equal(pathOf(page), `/console${path}`, title);
      await page.goForward();
      await dialog.waitFor();
      await page.keyboard.press('Escape');
      await dialog.waitFor({ state: 'detached' });
      await page.waitForURL((url) => url.pathname + url.search === `/console${path}`);
      await page.goto(address);
      await dialog.waitFor();
      await button(page, 'Close').click();
      await dialog.waitFor({ state: 'detached' });
      assert.equal(pathOf(page), `/console${path}`, title);
    }
    assert.deepEqual(complaints, []);
  });

  test('an entry of the log is opened by its link, also when it is on no page that is shown', async () => {
    const { tenant, page, complaints } = await newDesk();
    const reading = () => tenant.send('GET', `/tokens/card-${tenant.id}`);
    assert.equal((await reading()).status, 200);
    await goTo(page, `/log?entity_id=card-${tenant.id}`);
    await page.getByRole('button', { name: /^Token retrieved/ }).click();
    const dialog = page.getByRole('dialog', { name: /^Token retrieved/ });
    const named = dialog.getByText('test asked to read a token');
    await named.waitFor();
    const text = await dialog.innerText();
    const address = new URL(page.url());
    await page.goBack();
    await dialog.waitFor({ state: 'detached' });
    for (let count = 0; count < 60; count++) await tenant.send('GET', '/tokens/absent');
    address.searchParams.delete('entity_id');
    await page.goto(address.href);
    await named.waitFor();
    assert.equal(await dialog.innerText(), text, 'the same entry, with all that it says');
    address.searchParams.set('of', 'nothing of that name');
    await page.goto(address.href);
    await page.getByRole('dialog', { name: 'Log entry' }).waitFor();
    assert.deepEqual(complaints, []);
  });

  test('an open rule and an explanation are open again at their address', async () => {
    const { tenant, page, complaints } = await newDesk();
    await openPage(page, 'Applications');
    await page.getByRole('row').filter({ hasText: 'private' }).getByRole('link').first().click();
    const rule = page.locator('.rule-toggle').first();
    await rule.click();
    await page.getByLabel('Token id or container').fill(`card-${tenant.id}`);
    await button(page, 'Explain').click();
    const explained = page.getByTestId('explained');
    await explained.waitFor();
    const said = await explained.innerText();
    await page.reload();
    await explained.waitFor();
    assert.equal(await explained.innerText(), said);
    assert.equal(await rule.getAttribute('aria-expanded'), 'true');
    await rule.click();
    assert.ok(!page.url().includes('rule='));
    assert.deepEqual(complaints, []);
  });

  test('what is shown once is shown neither by a link nor by the way forward', async () => {
    const { page, complaints } = await newDesk();
    await openPage(page, 'Applications');
    await page.getByRole('row').filter({ hasText: 'private' }).getByRole('link').first().click();
    await button(page, 'Create key').click();
    const secret = await page.getByTestId('secret').innerText();
    const address = page.url();
    assert.ok(!address.includes(secret));
    await page.goBack();
    await page.getByTestId('secret').waitFor({ state: 'detached' });
    await page.goForward();
    await page.waitForURL(address);
    await page.getByRole('heading', { level: 1 }).waitFor();
    assert.ok(!(await page.content()).includes(secret));
    await page.goto(address);
    await page.getByText('To rotate a key').waitFor();
    assert.ok(!(await page.content()).includes(secret));
    assert.deepEqual(complaints, []);
  });

  test('anything is found by its name or id among many, with few requests', async () => {
    const { tenant, page, complaints } = await newDesk();
    const key = tenant.managementKey;
    const create = async (path: string, body: object): Promise<string> => {
      const { status, body: made, text } = await tenant.send('POST', path, { key, body });
      assert.equal(status, 201, text);
      return made.id;
    };
    const destination_url = 'https://psp.example.com';
    const application = { type: 'private', permissions: ['token:create'] };
    const first = await create('/applications', { ...application, name: 'The first of all' });
    const proxy = await create('/proxies', { name: 'The first destination', destination_url });
    for (let count = 0; count < 110; count++) {
      await create('/applications', { ...application, name: `Later ${count}` });
      await create('/proxies', { name: `Later ${count}`, destination_url });
    }
    const requests: string[] = [];
    const search = async (text: string) => {
      await page.keyboard.press('Control+k');
      await page.getByRole('combobox', { name: /whole id/ }).fill(text);
    };
    const opens = async (text: string, option: RegExp, path: string) => {
      await search(text);
      await page.getByRole('option', { name: option }).click();
      await page.waitForURL((url) => url.pathname + url.search === `/console${path}`);
      await page.getByRole('dialog').waitFor({ state: 'detached' });
    };
    await openPage(page, 'Overview');
    await page.locator('main [aria-busy=true]').first().waitFor({ state: 'detached' });
    page.on('request', (sent) => requests.push(new URL(sent.url()).pathname));
    await search('the first');
    await page.getByRole('option', { name: /The first destination/ }).waitFor();
    await page.getByRole('option', { name: /The first of all/ }).waitFor();
    assert.ok(requests.length <= 6, requests.join(' '));
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await opens('FIRST OF', /The first of all/, `/applications/${first}`);
    await opens(first, /The first of all/, `/applications/${first}`);
    await opens(proxy, /The first destination/, `/proxies/${proxy}`);
    await opens(`card-${tenant.id}`, /Token/, `/tokens/card-${tenant.id}`);
    await opens('Administrator', /Person/, await personPath(tenant));
    const { keys } = (await tenant.send('GET', '/applications/key', { key })).body;
    await opens(keys[0].id, /Log entries of this key/, `/log?key_id=${keys[0].id}`);
    await page.goBack();
    assert.ok(!page.url().includes('over='), 'the way back leads to the page before');
    assert.deepEqual(complaints, []);
  });

  async function personPath(tenant: TestTenant): Promise<string> {
    const { body } = await tenant.send('GET', '/people', { key: tenant.managementKey });
    return `/people/${body.data[0].id}`;
  }

  const pathOf = (page: Page): string => {
    const { pathname, search } = new URL(page.url());
    return pathname + search;
  };

  /** In the first field of the dialog, if it has one. */
  async function type(page: Page): Promise<void> {
    const fields = page.getByRole('dialog').getByRole('textbox');
    if ((await fields.count()) > 0) await fields.first().fill(typed);
  }
});

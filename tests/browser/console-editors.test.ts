/** What is typed in the console is never lost: by a conflict, a restart of the vault, or the end of the session. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Page } from 'playwright-core';
import { consoleSessionIdleMs } from '../../src/access/people/sign-in.ts';
import { withoutBrowser } from '../support/browser.ts';
import {
  administratorCode,
  button,
  consoleOf,
  newWatchedPage,
  openPage,
  violationsOn,
} from '../support/console-pages.ts';
import { onBothEngines } from '../support/engines.ts';

import { freePort } from '../support/temporary.ts';
import { newTenant as newTenantOf, type TestTenant } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

const lastFour = {
  description: 'Last four digits',
  priority: 1,
  container: '/pci/',
  permissions: ['token:read'],
  transform: 'mask',
};
const support = { name: 'Support desk', rules: [lastFour] };

onBothEngines('editors of the console', (engine) => {
  if (withoutBrowser) {
    test('editors of the console', { skip: withoutBrowser }, () => undefined);
    return;
  }
  const { browser, newDesk } = consoleOf(engine, { environment: { STRONGROOM_REACTORS: 'on' } });

  /** Opens the rules of the support desk, and types into the first one. */
  async function typeInto(page: Page, text: string): Promise<void> {
    await openPage(page, 'Applications');
    await page.getByRole('link', { name: support.name }).click();
    await page.getByRole('button', { name: /Last four digits/ }).click();
    await page.getByLabel('Description').fill(text);
  }

  async function storedRules(tenant: TestTenant) {
    const { body } = await tenant.send('GET', '/applications', { key: tenant.managementKey });
    return body.data.find(({ name }: { name: string }) => name === support.name);
  }

  const descriptionOf = async (tenant: TestTenant) =>
    (await storedRules(tenant)).rules[0].description;

  async function changeMeanwhile(tenant: TestTenant, description: string): Promise<void> {
    const { id, name, permissions } = await storedRules(tenant);
    const body = { name, permissions, rules: [{ ...lastFour, description }] };
    const key = tenant.managementKey;
    const changed = await tenant.send('PUT', `/applications/${id}`, { key, body });
    assert.equal(changed.status, 200, changed.text);
  }

  test('of two who change the same rules, the second one sees both and chooses', async () => {
    const { tenant, page, complaints } = await newDesk();
    await tenant.application(support);
    await typeInto(page, 'mine');
    await changeMeanwhile(tenant, 'theirs');
    await button(page, 'Save rules').click();
    const dialog = page.getByRole('dialog', { name: 'Somebody else changed it' });
    await dialog.getByText('"description": "mine"').waitFor();
    await dialog.getByText('"description": "theirs"').waitFor();
    assert.equal(await descriptionOf(tenant), 'theirs', 'nothing is saved before the choice');
    await dialog.getByRole('button', { name: 'Close' }).click();
    assert.equal(await page.getByLabel('Description').inputValue(), 'mine');
    await button(page, 'Save rules').click();
    await dialog.getByRole('button', { name: 'Save mine instead' }).click();
    await page.getByText('Saved', { exact: true }).waitFor();
    assert.equal(await descriptionOf(tenant), 'mine');
    await page.getByLabel('Description').fill('mine again');
    await changeMeanwhile(tenant, 'theirs again');
    await button(page, 'Save rules').click();
    await dialog.getByRole('button', { name: 'Discard mine' }).click();
    await dialog.waitFor({ state: 'detached' });
    assert.equal(await page.getByLabel('Description').inputValue(), 'theirs again');
    assert.equal(await descriptionOf(tenant), 'theirs again');
    assert.deepEqual(complaints, []);
  });

  test('what somebody else saves after the console has compared is not overwritten either', async () => {
    const { tenant, page } = await newDesk();
    await tenant.application(support);
    await typeInto(page, 'mine');
    let meanwhile = 0;
    await page.route('**/applications/*', async (route) => {
      if (route.request().method() === 'PUT' && meanwhile++ === 0) {
        assert.ok(route.request().headers()['if-match'], 'the change names the state');
        await changeMeanwhile(tenant, 'theirs');
      }
      await route.continue();
    });
    await button(page, 'Save rules').click();
    const dialog = page.getByRole('dialog', { name: 'Somebody else changed it' });
    await dialog.getByText('"description": "mine"').waitFor();
    await dialog.getByText('"description": "theirs"').waitFor();
    assert.equal(await descriptionOf(tenant), 'theirs', 'nothing is saved before the choice');
    await dialog.getByRole('button', { name: 'Save mine instead' }).click();
    await page.getByText('Saved', { exact: true }).waitFor();
    assert.equal(await descriptionOf(tenant), 'mine');
  });

  test('egress policies are tried before they are saved, and change nothing else', async () => {
    const { tenant, page, complaints } = await newDesk();
    const policies = [{ host: 'api.example.com', methods: ['POST'] }];
    await tenant.application(support);
    const before = await storedRules(tenant);
    await openPage(page, 'Applications');
    await page.getByRole('link', { name: support.name }).click();
    await page.getByText('cannot use the forward proxy').waitFor();
    await button(page, 'Edit policies').click();
    const dialog = page.getByRole('dialog', { name: 'Egress policies' });
    const text = dialog.getByLabel('Policies', { exact: true });
    await text.fill('[{');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.getByText('must be a JSON list').waitFor();
    await text.fill(JSON.stringify(policies));
    await dialog.getByLabel('Address', { exact: true }).fill('https://api.example.com/v1/charges');
    await dialog.getByRole('button', { name: 'Explain' }).click();
    const explained = page.getByTestId('egress-explained');
    await explained.getByText('refused', { exact: true }).waitFor();
    await explained.getByText('sent', { exact: true }).waitFor();
    assert.deepEqual(await violationsOn(page), []);
    await page.goBack();
    await page.getByText('not saved them yet').waitFor();
    await changeMeanwhile(tenant, 'theirs');
    await page.goForward();
    assert.equal(await text.inputValue(), JSON.stringify(policies));
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved', { exact: true }).waitFor();
    await page.getByRole('cell', { name: 'api.example.com' }).waitFor();
    const { egress, rules, permissions } = await storedRules(tenant);
    assert.deepEqual(egress, policies);
    assert.equal(rules[0].description, 'theirs', 'the rules are as they were saved meanwhile');
    assert.deepEqual(permissions, before.permissions);
    assert.deepEqual(complaints, []);
  });

  test('limits of an application are changed alone, and two who change them see both', async () => {
    const { tenant, page, complaints } = await newDesk();
    const shop = { name: 'Shop', type: 'public', permissions: ['token:create'] };
    await tenant.application(shop);
    const stored = async () => {
      const { body } = await tenant.send('GET', '/applications', { key: tenant.managementKey });
      return body.data.find(({ name }: { name: string }) => name === shop.name);
    };
    await openPage(page, 'Applications');
    await page.getByRole('link', { name: shop.name }).click();
    await page.getByText('any page, without fields').waitFor();
    await button(page, 'Edit limits').click();
    const dialog = page.getByRole('dialog', { name: 'Limits of its keys' });
    await dialog.getByLabel('Values an hour').fill('ten');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.getByText('must be a whole number').waitFor();
    await dialog.getByLabel('Values an hour').fill('500');
    await dialog.getByLabel('Origins of its pages').fill('https://shop.example.com');
    assert.deepEqual(await violationsOn(page), []);
    const before = await stored();
    const { status, text } = await tenant.send('PUT', `/applications/${before.id}`, {
      key: tenant.managementKey,
      body: { name: shop.name, permissions: before.permissions, egress_budget: { per_day: 70 } },
    });
    assert.equal(status, 200, text);
    await dialog.getByRole('button', { name: 'Save' }).click();
    const choice = page.getByRole('dialog', { name: 'Somebody else changed it' });
    await choice.getByText('Values a day: 70').waitFor();
    await choice.getByText('Values an hour: 500').waitFor();
    assert.deepEqual((await stored()).egress_budget, { per_day: 70 });
    await choice.getByRole('button', { name: 'Save mine instead' }).click();
    await page.getByText('Saved', { exact: true }).waitFor();
    await page.getByText('https://shop.example.com').waitFor();
    const { egress_budget, origins, permissions } = await stored();
    assert.deepEqual(egress_budget, { per_hour: 500 });
    assert.deepEqual(origins, ['https://shop.example.com']);
    assert.deepEqual(permissions, before.permissions);
    assert.deepEqual(complaints, []);
  });

  test('a webhook is disabled without taking back what somebody else changed', async () => {
    const { tenant, page, complaints } = await newDesk();
    const key = tenant.managementKey;
    const url = 'https://receiver.invalid/events';
    const first = { name: 'orders', url, events: ['token.created'] };
    const { body } = await tenant.send('POST', '/webhooks', { key, body: first });
    await openPage(page, 'Webhooks');
    await page.getByRole('link', { name: 'orders' }).click();
    await button(page, 'Disable').waitFor();
    const theirs = {
      ...first,
      name: 'renamed',
      events: ['token.deleted'],
      notify_email: 'a@b.example',
    };
    const changed = await tenant.send('PUT', `/webhooks/${body.id}`, { key, body: theirs });
    assert.equal(changed.status, 200, changed.text);
    await button(page, 'Disable').click();
    await page.getByRole('heading', { level: 1, name: 'renamed' }).waitFor();
    const { body: stored } = await tenant.send('GET', `/webhooks/${body.id}`, { key });
    const { name, events, notify_email, status } = stored;
    assert.deepEqual({ ...first, name, events, notify_email }, theirs);
    assert.equal(status, 'disabled');
    assert.deepEqual(complaints, []);
  });

  test('what was typed is there when the person comes back from another page', async () => {
    const { tenant, page, complaints } = await newDesk();
    await tenant.application(support);
    await typeInto(page, 'half a thought');
    await openPage(page, 'Log');
    await page.goBack();
    await page.getByRole('button', { name: /half a thought/ }).waitFor();
    await button(page, 'Discard').click();
    await page.getByRole('button', { name: /Last four digits/ }).waitFor();
    assert.deepEqual(complaints, []);
  });

  test('where the session has ended, the page comes back with what was typed after a new sign-in', async () => {
    const { tenant, page, complaints } = await newDesk();
    await tenant.application(support);
    await typeInto(page, 'typed before the end');
    tenant.vault.clock.advance(consoleSessionIdleMs);
    await button(page, 'Save rules').click();
    await page.getByRole('heading', { name: 'Sign in to the vault' }).waitFor();
    assert.ok(!(await page.getByLabel('Description').isVisible()), 'the page below is not shown');
    await page.keyboard.press('Escape');
    await page.getByLabel('Or paste the link here').fill(await administratorCode(tenant));
    await button(page, 'Sign in').click();
    await page.getByRole('heading', { level: 1, name: support.name }).waitFor();
    assert.equal(await page.getByLabel('Description').inputValue(), 'typed before the end');
    await button(page, 'Save rules').click();
    await page.getByText('Saved', { exact: true }).waitFor();
    assert.equal(await descriptionOf(tenant), 'typed before the end');
    assert.deepEqual(complaints, []);
  });

  test('earlier code of a reactor is shown and saved again, and the editor completes arguments', async () => {
    const { tenant, page, complaints } = await newDesk();
    const key = tenant.managementKey;
    const code = (text: string) => `module.exports = () => '${text}';\n`;
    const body = { name: 'greeting', code: code('first') };
    const made = await tenant.send('POST', '/reactors', { key, body });
    assert.equal(made.status, 201, made.text);
    const path = `/reactors/${made.body.id}`;
    const changed = await tenant.send('PUT', path, {
      key,
      body: { ...body, code: code('second') },
    });
    assert.equal(changed.status, 200, changed.text);
    await openPage(page, 'Reactors');
    await page.getByRole('link', { name: 'greeting' }).click();
    await button(page, 'Show in editor').click();
    const editor = page.getByRole('textbox', { name: 'Code' });
    await editor.getByText("'first'").waitFor();
    await button(page, 'Save').click();
    await page.getByText('Saved', { exact: true }).waitFor();
    assert.equal((await tenant.send('GET', path, { key })).body.code, code('first'));
    await page.getByRole('cell', { name: '−1 +1' }).first().waitFor();
    await page.getByLabel('Arguments').fill('{ "amount": 12 }');
    await editor.click();
    await page.keyboard.press('Control+End');
    await page.keyboard.type('event.req.args.am');
    await page.getByRole('option', { name: /event\.req\.args\.amount/ }).waitFor();
    assert.deepEqual(complaints, []);
  });

  /** The vault, which can stop and start again at its address, with the administrator signed in. */
  async function newDeskThatStops(t: TestContext) {
    const environment = { STRONGROOM_PORT: String(await freePort()) };
    const first = await startVault(t, engine, { environment });
    const tenant = await newTenantOf(first);
    await tenant.application(support);
    const context = await browser().newContext();
    t.after(() => context.close());
    const { page } = await newWatchedPage(context);
    await page.goto(`${first.url}/console#${await administratorCode(tenant)}`);
    await page.getByRole('navigation').waitFor();
    const { place, clock } = first;
    const start = async () => {
      const again = await startVault(t, engine, { environment, place, clock });
      assert.equal(again.url, first.url);
      return again;
    };
    return { page, context, tenant, stop: () => first.stop(), start };
  }

  const lost = (page: Page) => page.getByText('The vault does not respond');

  test('a vault that restarts under an open page gets what was typed', async (t) => {
    const { page, tenant, stop, start } = await newDeskThatStops(t);
    await typeInto(page, 'typed while it was away');
    await stop();
    await button(page, 'Save rules').click();
    await lost(page).waitFor();
    await page.getByText('The vault could not be reached').waitFor();
    await page.getByLabel('Description').fill('typed while it was away, and more');
    const again = await start();
    await lost(page).waitFor({ state: 'detached' });
    await button(page, 'Save rules').click();
    await page.getByText('Saved', { exact: true }).waitFor();
    const { body } = await again.send('GET', '/applications', { key: tenant.managementKey });
    const saved = body.data.find(({ name }: { name: string }) => name === support.name);
    assert.equal(saved.rules[0].description, 'typed while it was away, and more');
  });

  test('a page that was opened while the vault was away fills by itself, and a form keeps its text', async (t) => {
    const { page, stop, start } = await newDeskThatStops(t);
    await stop();
    await openPage(page, 'Applications');
    await lost(page).waitFor();
    await button(page, 'Create application').click();
    const form = page.getByRole('dialog', { name: 'Create application' });
    await form.getByLabel('Name').fill('typed in a form');
    assert.deepEqual(await violationsOn(page), []);
    await start();
    await page.getByRole('link', { name: support.name, includeHidden: true }).waitFor();
    await lost(page).waitFor({ state: 'detached' });
    assert.equal(await form.getByLabel('Name').inputValue(), 'typed in a form');
    await form.getByRole('button', { name: 'Create', exact: true }).click();
    await page.getByRole('dialog', { name: 'Application created' }).waitFor();
  });

  test('a browser without its network says so by itself, until it has it again', async (t) => {
    const { page, context } = await newDeskThatStops(t);
    await context.setOffline(true);
    await lost(page).waitFor();
    await context.setOffline(false);
    await lost(page).waitFor({ state: 'detached' });
  });
});

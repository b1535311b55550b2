/** Attacks on the console in a browser: frames of other pages, stored scripts, redirects, and what a browser keeps. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, type TestContext, test } from 'node:test';
import type { Page } from 'playwright-core';
import { withoutBrowser } from '../support/browser.ts';
import {
  button,
  cardNumber,
  consoleOf,
  consolePages,
  type Desk,
  goTo,
  hostile,
  openPage,
} from '../support/console-pages.ts';
import { answer } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { startCalled } from '../support/proxy-calls.ts';

const { destination, url: destinationUrl, environment } = await startCalled({ after });

/** A page of another origin. */
async function pageElsewhere(t: TestContext, html: string): Promise<string> {
  const server = createServer((_, response) => {
    response.setHeader('content-type', 'text/html').end(html);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

async function reveal(page: Page): Promise<void> {
  await button(page, 'Reveal').click();
  await page.getByLabel('Reason').fill('chargeback 4711');
  await page.getByRole('dialog').getByRole('button', { name: 'Reveal' }).click();
}

const holds = async (page: Page, text: string) => (await page.content()).includes(text);

onBothEngines('attacks on the console', (engine) => {
  if (withoutBrowser) {
    test('attacks on the console', { skip: withoutBrowser }, () => undefined);
    return;
  }
  const { newDesk, newTenant } = consoleOf(engine, {
    environment: { ...environment, STRONGROOM_REACTORS: 'on' },
  });

  test('no page of another origin shows the console in a frame', async (t) => {
    const { tenant, context } = await newDesk();
    const address = await pageElsewhere(t, `<iframe src="${tenant.vault.url}/console"></iframe>`);
    const page = await context.newPage();
    const refused = page.waitForEvent('console', (one) => one.text().includes('frame-ancestors'));
    await page.goto(address);
    await refused;
    for (const frame of page.frames()) {
      assert.equal(await frame.locator('#app').count(), 0, frame.url());
    }
  });

  test('a page of another origin can neither act with the session nor read with it', async (t) => {
    const { tenant, context } = await newDesk();
    const { url } = tenant.vault;
    const address = await pageElsewhere(t, '<form id="f" method="post"></form>');
    const page = await context.newPage();
    await page.goto(address);
    const attempts = `Promise.all(['/console/session', '/tokens', '/applications'].flatMap((path) =>
      ['GET', 'POST', 'DELETE'].map((method) =>
        fetch('${url}' + path, { method, credentials: 'include', mode: 'no-cors' })
          .then((response) => response.type, () => 'failed'))))`;
    const seen = (await page.evaluate(attempts)) as readonly string[];
    assert.ok(
      seen.every((one) => one === 'opaque' || one === 'failed'),
      seen.join(),
    );
    await page.evaluate(`f.action = '${url}/console/session'; f.submit()`);
    await page.waitForLoadState();
    assert.equal((await tenant.rows('console_sessions')).length, 1, 'the session goes on');
  });

  test('what a tenant stores is text on every page: names, metadata, logs, outputs, and responses', async () => {
    const { tenant, page, complaints } = await newDesk();
    const ids = await fillWithScripts(tenant);
    const paths = [
      `/tokens/card-${tenant.id}`,
      `/applications/${ids.application}`,
      `/proxies/${ids.proxy}`,
      `/reactors/${ids.reactor}`,
      `/webhooks/${ids.webhook}`,
      `/people/${ids.person}`,
      '/account',
    ];
    /** Elements that only a stored text can have made. */
    const made = 'main img, main script, main [onerror], aside img, aside script';
    let shown = 0;
    const check = async (name: string) => {
      await page.locator('main [aria-busy=true]').first().waitFor({ state: 'detached' });
      assert.equal(await page.locator(made).count(), 0, name);
      shown += (await page.getByText(hostile, { exact: false }).count()) > 0 ? 1 : 0;
    };
    for (const name of consolePages) {
      await openPage(page, name);
      await check(name);
    }
    for (const path of paths) {
      await goTo(page, path);
      await page.getByRole('heading', { level: 1 }).first().waitFor();
      await check(path);
    }
    await goTo(page, `/reactors/${ids.reactor}`);
    await page.getByLabel('Reason').fill('trial');
    await button(page, 'Run').click();
    await page.getByTestId('result').getByText(hostile).waitFor();
    await page.getByText(`info  ${hostile}`).waitFor();
    await check('the output of code');
    await goTo(page, `/proxies/${ids.proxy}`);
    destination.behave(answer(200, ['Content-Type', 'text/html'], hostile));
    await page.getByLabel('Reason').fill('trial');
    await button(page, 'Send').click();
    await page.getByTestId('tried').getByText(hostile).waitFor();
    await check('the response of a destination');
    await goTo(page, '/');
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: /whole id/ }).fill('img');
    await page.getByRole('option').first().waitFor();
    await check('the palette');
    await goTo(page, `/log?entity_id=card-${tenant.id}`);
    await page
      .getByRole('button', { name: /^Token retrieved/ })
      .first()
      .click();
    await page.getByRole('dialog').getByText('Trace id').waitFor();
    await check('an entry of the log');
    assert.ok(shown >= 10, `the texts are shown on ${shown} pages`);
    assert.deepEqual(complaints, []);
  });

  /** Everything that a tenant can name, and a log with it. */
  async function fillWithScripts(tenant: Desk['tenant']) {
    const manage = async (path: string, body: unknown): Promise<string> => {
      const key = tenant.managementKey;
      const made = await tenant.send('POST', path, { key, body });
      assert.equal(made.status, 201, made.text);
      return made.body.id;
    };
    const key = tenant.managementKey;
    await tenant.send('PUT', '/tenants/self', { key, body: { name: hostile } });
    const rule = {
      description: hostile,
      priority: 1,
      container: '/pci/',
      permissions: ['token:read'],
      transform: 'mask',
    };
    const application = await manage('/applications', {
      name: hostile,
      type: 'private',
      rules: [rule],
    });
    const proxy = await manage('/proxies', { name: hostile, destination_url: destinationUrl });
    const code = `module.exports = async () => { console.info(${JSON.stringify(hostile)});
      return { res: { body: { text: ${JSON.stringify(hostile)} } } }; };`;
    const reactor = await manage('/reactors', {
      name: hostile,
      code,
      runtime: { image: 'node22' },
    });
    const webhook = await manage('/webhooks', {
      name: hostile,
      url: `${destinationUrl}/events`,
      events: ['token.created'],
    });
    const disabled = { name: hostile, url: `${destinationUrl}/x`, events: ['token.created'] };
    const off = await manage('/webhooks', disabled);
    await tenant.send('PUT', `/webhooks/${off}`, {
      key,
      body: { ...disabled, status: 'disabled' },
    });
    const person = await manage('/people', { name: hostile, applications: [application] });
    // What a log repeats of a request.
    await tenant.send('GET', `/tokens/card-${tenant.id}`, {
      headers: {
        'user-agent': `${hostile}/1.0`,
        'svc-reason': encodeURIComponent(hostile),
        'svc-trace-id': hostile,
      },
    });
    return { application, proxy, reactor, webhook, person };
  }

  test('at the address of another tenant’s things, a person learns not even that they exist', async () => {
    const { page, complaints } = await newDesk();
    const other = await newTenant();
    const key = other.managementKey;
    const send = async (path: string, body: object): Promise<string> =>
      (await other.send('POST', path, { key, body })).body.id;
    const name = 'a name of another tenant';
    const application = await send('/applications', {
      ...{ name, type: 'private' },
      permissions: ['token:read'],
    });
    const proxy = await send('/proxies', { name, destination_url: destinationUrl });
    const { body: token } = await other.token({ type: 'token', data: 'x', metadata: { name } });
    const absent = crypto.randomUUID();
    const said = async (path: string, id: string): Promise<string> => {
      await goTo(page, `/${path}/${id}`);
      const text = await page.locator('main').getByRole('alert').innerText();
      assert.ok(!(await holds(page, name)), path);
      return text.replace(/ \[trace id .*\]/, '');
    };
    const others = { applications: application, proxies: proxy, tokens: token.id };
    for (const [path, id] of Object.entries(others)) {
      assert.equal(await said(path, id), await said(path, absent), path);
    }
    assert.deepEqual(complaints, []);
  });

  test('an address of the console leads nowhere else', async () => {
    const { tenant, page } = await newDesk();
    const { origin } = new URL(tenant.vault.url);
    for (const path of [
      '//evil.example',
      '/\\evil.example',
      '/%2F%2Fevil.example',
      '/javascript:alert(1)',
    ]) {
      await page.goto(`${origin}/console${path}?next=https://evil.example#https://evil.example`);
      await page.getByRole('heading', { level: 1 }).first().waitFor();
      assert.equal(new URL(page.url()).origin, origin, path);
    }
  });

  test('a value that was shown is in no storage, no history, no print, and not there on the way back', async () => {
    const { tenant, page } = await newDesk();
    await goTo(page, `/tokens/card-${tenant.id}`);
    await reveal(page);
    await page.getByTestId('revealed').getByText(cardNumber).waitFor();
    await page.emulateMedia({ media: 'print' });
    assert.ok(!(await page.getByTestId('revealed').isVisible()), 'paper shows no value');
    await page.emulateMedia({ media: 'screen' });
    const kept = await page.evaluate(`(async () => JSON.stringify([
      Object.entries(localStorage), Object.entries(sessionStorage), history.state, location.href, document.title,
      await indexedDB.databases(), await caches.keys(), document.cookie,
      performance.getEntries().map(({ name }) => name),
    ]))()`);
    assert.ok(!String(kept).includes(cardNumber) && !String(kept).includes('4711'), String(kept));
    const headers = await tenant.vault.send('GET', '/tokens/none');
    assert.match(headers.headers.get('cache-control') ?? '', /no-store/);
    await page.goto('about:blank');
    await page.goBack();
    await page.getByRole('heading', { level: 1 }).first().waitFor();
    assert.ok(!(await holds(page, cardNumber)));
  });

  test('a role that loses a permission while its page is open shows nothing more', async () => {
    const { tenant, page } = await newDesk();
    await goTo(page, `/tokens/card-${tenant.id}`);
    await page.getByText('XXXXXXXXXXXX4242').waitFor();
    const key = tenant.managementKey;
    const { body } = await tenant.send('GET', '/applications', { key });
    const role = body.data.find(({ name }: { readonly name: string }) => name === 'Console');
    const taken = { name: role.name, permissions: ['token:search'], rules: [] };
    const changed = await tenant.send('PUT', `/applications/${role.id}`, { key, body: taken });
    assert.equal(changed.status, 200, changed.text);
    await reveal(page);
    await page.getByRole('dialog').getByRole('alert').waitFor();
    assert.ok(!(await holds(page, cardNumber)));
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    await openPage(page, 'Tokens');
    await page
      .getByText(/token:read/)
      .first()
      .waitFor();
    assert.ok(!(await holds(page, 'XXXXXXXXXXXX4242')));
    const shown = (await tenant.rows('logs')).filter(({ disclosure }) => disclosure?.[0] === 'r');
    assert.deepEqual(shown, [], 'the log has no revealed value');
  });
});

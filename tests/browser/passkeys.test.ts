/** Signing in to the console by passkeys, in a browser with an authenticator. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { after, before, test } from 'node:test';
import type { Browser, BrowserContext } from 'playwright-core';
import { presenceMs } from '../../src/access/console-sessions.ts';
import { browserUrl } from '../../src/cli/browser-url.ts';
import { withoutBrowser } from '../support/browser.ts';
import { administratorCode, button, consoleOf, newWatchedPage } from '../support/console-pages.ts';
import { onBothEngines } from '../support/engines.ts';
import { publicOrigin, startPublicBrowser } from '../support/public-front.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';

async function addAuthenticator(
  context: BrowserContext,
  page: Awaited<ReturnType<BrowserContext['newPage']>>,
): Promise<void> {
  const session = await context.newCDPSession(page);
  await session.send('WebAuthn.enable');
  await session.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
}

onBothEngines('passkeys in a browser', (engine) => {
  if (withoutBrowser) {
    test('passkeys in a browser', { skip: withoutBrowser }, () => undefined);
    return;
  }
  const newTenant = tenantsOf(engine, { environment: { STRONGROOM_PUBLIC_URL: publicOrigin } });
  const borrowed: (() => unknown)[] = [];
  let tenant: TestTenant | undefined;
  let browser: Browser | undefined;
  before(async () => {
    tenant = await newTenant();
    browser = await startPublicBrowser(
      { after: (give) => void borrowed.push(give) },
      tenant.vault.url,
    );
  });
  after(async () => {
    for (const give of borrowed) await give();
  });

  /** A page whose browser has an authenticator that unlocks by a finger. */
  async function newDesk() {
    assert.ok(tenant && browser);
    const context = await browser.newContext({ ignoreHTTPSErrors: true });
    const { page, complaints } = await newWatchedPage(context);
    await addAuthenticator(context, page);
    return { tenant, context, page, complaints };
  }

  test('away from the vault, a link adds the first passkey, which signs in from then on', async () => {
    const desk = await newDesk();
    const { page, complaints } = desk;
    await page.goto(`${publicOrigin}/console#${await administratorCode(desk.tenant)}`);
    await page.getByLabel('Name').fill('Laptop of Ada');
    assert.ok(!page.url().includes('#'), 'the code stays in no address');
    await button(page, 'Add passkey and sign in').click();
    await page.getByRole('navigation').waitFor();
    await page.getByRole('link', { name: /^Administrator/ }).click();
    await page.getByRole('cell', { name: 'Laptop of Ada' }).waitFor();
    await button(page, 'Sign out').click();
    await button(page, 'Sign in with a passkey').click();
    await page.getByRole('navigation').waitFor();
    const sessions = await desk.tenant.rows('console_sessions');
    assert.deepEqual(
      sessions.map(({ sign_in }) => sign_in),
      ['passkey'],
    );
    assert.deepEqual(complaints, []);
  });

  test('a person removes a passkey, with which nobody signs in any more', async () => {
    const desk = await newDesk();
    const { page, complaints } = desk;
    await page.goto(`${publicOrigin}/console#${await administratorCode(desk.tenant)}`);
    await page.getByLabel('Name').fill('Phone');
    await button(page, 'Add passkey and sign in').click();
    await page.getByRole('link', { name: /^Administrator/ }).click();
    const row = page.getByRole('row').filter({ hasText: 'Phone' });
    await row.getByRole('button', { name: 'Remove' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel(/^Type/).fill('Phone');
    await dialog.getByRole('button', { name: 'Remove sign-in method' }).click();
    await row.waitFor({ state: 'detached' });
    await button(page, 'Sign out').click();
    await button(page, 'Sign in with a passkey').click();
    await page.getByRole('alert').getByText('The passkey was not accepted').waitFor();
    assert.deepEqual(complaints, []);
  });

  test('who was away confirms with the passkey before a key is made, and what was typed goes on', async () => {
    const { tenant: own, page, complaints } = await newDesk();
    await page.goto(`${publicOrigin}/console#${await administratorCode(own)}`);
    await page.getByLabel('Name').fill('Laptop');
    await button(page, 'Add passkey and sign in').click();
    await page.getByRole('navigation').getByRole('link', { name: 'Applications' }).click();
    own.vault.clock.advance(presenceMs);
    await button(page, 'Create application').click();
    const form = page.getByRole('dialog', { name: 'Create application' });
    await form.getByLabel('Name').fill('Typed before');
    await form.getByRole('button', { name: 'Create', exact: true }).click();
    await button(page, 'Confirm with a passkey').click();
    await page.getByTestId('secret').waitFor();
    const list = await own.send('GET', '/applications', { key: own.managementKey });
    const names = list.body.data.map(({ name }: { name: string }) => name);
    assert.ok(names.includes('Typed before'));
    assert.deepEqual(complaints, []);
  });
});

onBothEngines('passkeys on the machine of the vault', (engine) => {
  if (withoutBrowser) {
    test('passkeys at localhost', { skip: withoutBrowser }, () => undefined);
    return;
  }
  const { browser, newTenant } = consoleOf(engine);

  test('the address that the first start prints takes the link, and then passkeys', async () => {
    const tenant = await newTenant();
    const url = await browserUrl(tenant.vault.url);
    assert.match(url, /^http:\/\/localhost:\d+$/);
    const context = await browser().newContext();
    const { page, complaints } = await newWatchedPage(context);
    await addAuthenticator(context, page);
    await page.goto(`${url}/console#${await administratorCode(tenant)}`);
    await page.getByRole('link', { name: /^Administrator/ }).click();
    await button(page, 'Add passkey').click();
    await page.getByRole('dialog').getByLabel('Name').fill('This machine');
    await page.getByRole('dialog').getByRole('button', { name: 'Add passkey' }).click();
    await page.getByRole('cell', { name: 'This machine' }).waitFor();
    await button(page, 'Sign out').click();
    await button(page, 'Sign in with a passkey').click();
    await page.getByRole('navigation').getByRole('link', { name: 'Tokens' }).click();
    await page.getByRole('heading', { level: 1, name: 'Tokens' }).waitFor();
    const sessions = await tenant.rows('console_sessions');
    assert.deepEqual(
      sessions.map(({ sign_in }) => sign_in),
      ['passkey'],
    );
    assert.deepEqual(complaints, []);
    await context.close();
  });

  test('no code goes to another server that the name may lead to', async (t) => {
    const other = createServer((socket) => socket.destroy());
    other.listen({ host: '::1', port: 0 });
    await once(other, 'listening');
    t.after(() => other.close());
    const { port } = other.address() as AddressInfo;
    assert.equal(await browserUrl(`http://127.0.0.1:${port}`), `http://127.0.0.1:${port}`);
    assert.equal(await browserUrl(`http://[::1]:${port}`), `http://localhost:${port}`);
    assert.equal(await browserUrl('https://127.0.0.1:8443'), 'https://127.0.0.1:8443');
    assert.equal(await browserUrl('http://127.0.0.2:8080'), 'http://127.0.0.2:8080');
  });
});

/** Signing in to the console with an identity provider, in a browser. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { presenceMs } from '../../src/access/console-sessions.ts';
import { readReloadable } from '../../src/runtime/config/config.ts';
import { withoutBrowser } from '../support/browser.ts';
import { button, newWatchedPage } from '../support/console-pages.ts';
import { installed, reasonWithout } from '../support/development-packages.ts';
import { onBothEngines } from '../support/engines.ts';
import {
  clientId,
  clientSecret,
  startProvider,
  type TestProvider,
  withoutProvider,
} from '../support/identity-provider.ts';
import { publicOrigin, startPublicBrowser } from '../support/public-front.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { newTenant, type TestTenant } from '../support/tenant.ts';
import { startVault, type TestVault } from '../support/vault.ts';

const axe = await installed('axe-core');

onBothEngines('an identity provider in a browser', (engine) => {
  const skip = withoutBrowser || withoutProvider || reasonWithout({ 'axe-core': axe });
  if (skip) {
    test('an identity provider in a browser', { skip }, () => undefined);
    return;
  }
  const borrowed: (() => unknown)[] = [];
  const lender = { after: (give: () => unknown) => void borrowed.push(give) };
  let provider: TestProvider;
  let vault: TestVault;
  let tenant: TestTenant;
  let browser: Browser;

  before(async () => {
    provider = await startProvider(lender, {
      publicUrl: publicOrigin,
      vaultUrl: () => vault.url,
      now: () => vault.clock.now(),
      asks: true,
    });
    const directory = temporaryDirectory(lender);
    const [secret, roles] = [join(directory, 'secret'), join(directory, 'roles.json')];
    writeFileSync(secret, clientSecret);
    writeFileSync(roles, '[]');
    const environment = {
      STRONGROOM_PUBLIC_URL: publicOrigin,
      STRONGROOM_RATE_LIMITS: 'off',
      STRONGROOM_OIDC_ISSUER: provider.issuer,
      STRONGROOM_OIDC_CLIENT_ID: clientId,
      STRONGROOM_OIDC_CLIENT_SECRET_FILE: secret,
      STRONGROOM_OIDC_NAME: 'Example Inc.',
      STRONGROOM_OIDC_ROLES: roles,
      STRONGROOM_OIDC_SCOPES: 'profile groups',
    };
    vault = await startVault(lender, engine, { environment });
    tenant = await newTenant(vault);
    const key = tenant.managementKey;
    const application = (await tenant.send('GET', '/applications/key', { key })).body.id;
    writeFileSync(roles, JSON.stringify([{ value: 'leads', tenant: tenant.id, application }]));
    const { isDone, text } = await vault.running.reload(() => readReloadable(environment));
    assert.ok(isDone, text);
    browser = await startPublicBrowser(lender, vault.url);
  });
  after(async () => {
    for (const give of borrowed.reverse()) await give();
  });

  const signInButton = 'Sign in with Example Inc.';

  /** What a reader of screens, or of the keyboard alone, would stumble over. */
  async function violationsOn(page: Page): Promise<unknown> {
    const path = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
    await page.evaluate(readFileSync(path, 'utf8'));
    const { violations } = (await page.evaluate(
      "axe.run(document, { resultTypes: ['violations'] })",
    )) as { readonly violations: readonly { readonly id: string }[] };
    return violations.map(({ id }) => id);
  }

  async function newPage(subject: string, groups: readonly string[]) {
    provider.people.set(subject, { name: 'Ada Lovelace', groups });
    provider.present = subject;
    const context = await browser.newContext({ ignoreHTTPSErrors: true });
    return { context, ...(await newWatchedPage(context)) };
  }

  test('a person signs in, lands on the page of the address, confirms in a window, and signs out of both', async () => {
    const { context, page, complaints } = await newPage('ada', ['leads']);
    await page.goto(`${publicOrigin}/console/applications?q=test&tenant=${tenant.id}`);
    await button(page, signInButton).waitFor();
    assert.deepEqual(await violationsOn(page), []);
    await button(page, signInButton).click();
    await button(page, 'Let ada in').click();
    await page.getByRole('navigation').waitFor();
    assert.equal(page.url(), `${publicOrigin}/console/applications?q=test`);
    const kept = await page.evaluate(() =>
      JSON.stringify([{ ...localStorage }, { ...sessionStorage }]),
    );
    assert.ok(!/code|state|token/.test(kept), kept);

    vault.clock.advance(presenceMs);
    await button(page, 'Create application').click();
    const form = page.getByRole('dialog', { name: 'Create application' });
    await form.getByLabel('Name').fill('Typed before');
    await form.getByRole('button', { name: 'Create', exact: true }).click();
    const opening = context.waitForEvent('page');
    await button(page, 'Confirm with Example Inc.').click();
    const confirming = await opening;
    provider.people.set('somebody-else', { name: 'Eve', groups: ['leads'] });
    provider.present = 'somebody-else';
    await button(confirming, 'Let somebody-else in').click();
    await confirming.getByRole('link', { name: 'Try again' }).click();
    provider.present = 'ada';
    await button(confirming, 'Let ada in').click();
    await page.getByTestId('secret').waitFor();
    const list = await tenant.send('GET', '/applications', { key: tenant.managementKey });
    assert.ok(list.body.data.some(({ name }: { name: string }) => name === 'Typed before'));

    await page.goto(`${publicOrigin}/console/account`);
    await page.getByText('You sign in with Example Inc., which decides how.').waitFor();
    assert.equal(await page.getByRole('button', { name: 'Add passkey' }).count(), 0);
    await button(page, 'Sign out').click();
    await page.waitForURL(`${provider.issuer}/**`);
    await button(page, 'Yes, sign me out').click();
    await button(page, signInButton).waitFor();
    assert.ok(page.url().startsWith(`${publicOrigin}/console`));
    assert.deepEqual(await tenant.rows('console_sessions'), []);
    assert.deepEqual(complaints, []);
  });

  test('who has no role reads why, and can go back', async () => {
    const { page, complaints } = await newPage('eve', []);
    await page.goto(`${publicOrigin}/console`);
    await button(page, signInButton).click();
    await button(page, 'Let eve in').click();
    await page.getByRole('alert').getByText('you have no role here').waitFor();
    assert.deepEqual(await violationsOn(page), []);
    assert.ok(!/code=|state=/.test(page.url()), 'the response stays in no address');
    await page.getByRole('link', { name: 'Back to the console' }).click();
    await button(page, signInButton).waitFor();
    assert.deepEqual(complaints, []);
  });
});

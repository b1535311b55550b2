/** The walk of somebody who knows the README alone: four tasks, by what the pages say. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { withoutBrowser } from '../support/browser.ts';
import { button, consoleOf, openPage } from '../support/console-pages.ts';
import { answer } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { runJob } from '../support/jobs.ts';
import { nextLook } from '../support/poll.ts';
import { startCalled } from '../support/proxy-calls.ts';

const { destination, url: destinationUrl, environment } = await startCalled({ after });

const reading = {
  description: 'Reads cards',
  priority: 1,
  container: '/pci/',
  permissions: ['token:read'],
  transform: 'reveal',
};

onBothEngines('a first walk through the console', (engine) => {
  if (withoutBrowser) {
    test('a first walk through the console', { skip: withoutBrowser }, () => undefined);
    return;
  }
  const { newDesk } = consoleOf(engine, { environment });

  test('finds who revealed a card, changes a rule, rotates a key, and sends a failed delivery again', async () => {
    const { tenant, page, complaints } = await newDesk();
    const key = tenant.managementKey;
    const supportKey = await tenant.application({ name: 'Support desk', rules: [reading] });
    const revealed = await tenant.send('GET', `/tokens/card-${tenant.id}`, { key: supportKey });
    assert.equal(revealed.status, 200);

    await openPage(page, 'Tokens');
    await page.getByRole('searchbox').fill('4242');
    await page.getByRole('link', { name: `card-${tenant.id}` }).click();
    await page.getByRole('link', { name: 'Who revealed it' }).click();
    await page.getByRole('heading', { level: 1, name: 'Log' }).waitFor();
    await page.getByRole('cell', { name: 'Support desk' }).waitFor();
    assert.equal(await page.getByRole('row').count(), 2, 'the one reveal, below the head');

    await openPage(page, 'Applications');
    await page.getByRole('link', { name: 'Support desk' }).click();
    await page.getByRole('button', { name: /Reads cards/ }).click();
    await page.getByLabel('Transform').selectOption('mask');
    await page.getByLabel('Token id or container').fill(`card-${tenant.id}`);
    await button(page, 'Explain').click();
    await page.getByTestId('explained').getByText('sees the value').waitFor();
    await page.getByTestId('explained').getByText('sees it masked').waitFor();
    await button(page, 'Save rules').click();
    await page.getByText('Saved', { exact: true }).waitFor();
    const masked = await tenant.send('GET', `/tokens/card-${tenant.id}`, { key: supportKey });
    assert.match(masked.text, /XXXX/);

    await page.getByText('To rotate a key, create another one').waitFor();
    await button(page, 'Create key').click();
    const made = await page.getByTestId('secret').innerText();
    await button(page, 'Close').click();
    const [first = ''] = await page.getByRole('button', { name: /^Delete key/ }).all();
    assert.ok(first !== '');
    const name = (await first.getAttribute('aria-label')) ?? '';
    await first.click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel(/^Type/).fill(name.split(' ').at(-1)?.slice(0, 8) ?? '');
    await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
    const statusWith = async (one: string) =>
      (await tenant.send('GET', '/applications/key', { key: one })).status;
    assert.equal(await statusWith(made), 200);
    assert.equal(await statusWith(supportKey), 401);

    const webhook = { name: 'orders', url: `${destinationUrl}/events`, events: ['token.created'] };
    const { id } = (await tenant.send('POST', '/webhooks', { key, body: webhook })).body;
    await failDelivery(tenant, id);
    await openPage(page, 'Problems');
    await page.getByRole('link', { name: /Deliveries to the webhook orders have failed/ }).click();
    destination.behave(answer(200));
    const before = destination.requests.length;
    await page.getByRole('button', { name: /^Send again/ }).click();
    await page.getByText('Sent again', { exact: true }).waitFor();
    while (destination.requests.length === before) await nextLook();
    assert.deepEqual(complaints, []);
  });

  test('the overview shows what callers did, whichever period is chosen', async () => {
    const { tenant, page, complaints } = await newDesk();
    const supportKey = await tenant.application({ name: 'Support desk', rules: [reading] });
    for (let times = 0; times < 3; times++) {
      await tenant.send('GET', `/tokens/card-${tenant.id}`, { key: supportKey });
    }
    await runJob(tenant.vault, 'record activity');
    await openPage(page, 'Tokens');
    await openPage(page, 'Overview');
    for (const period of ['Day', 'Month', 'Hour']) {
      await page.getByRole('tab', { name: period }).click();
      await page.getByRole('img', { name: /^Revealed values and refusals\. 3 revealed/ }).waitFor();
      await page.getByRole('img', { name: /^Requests\. [1-9]\d* requests, 0 failed/ }).waitFor();
      await page.getByRole('link', { name: 'Support desk 3' }).waitFor();
    }
    assert.match(page.url(), /period=hour$/);
    assert.deepEqual(complaints, []);
  });

  /** As after its last attempt. */
  async function failDelivery(
    { vault, send, managementKey: key, rows }: Awaited<ReturnType<typeof newDesk>>['tenant'],
    webhook: string,
  ): Promise<void> {
    destination.behave(answer(500));
    assert.equal((await send('POST', `/webhooks/${webhook}/test`, { key })).status, 202);
    let [row] = await rows('deliveries');
    while (row === undefined || row.attempts === '[]') {
      await nextLook();
      [row] = await rows('deliveries');
    }
    const { tenant_id, webhook_id, delivery_id, due_at, state, attempts } = row;
    const now = { tenant_id, webhook_id, delivery_id, due_at, attempts, state: 'failed' } as const;
    const was = { was_state: state, was_due_at: due_at };
    await vault.running.vault.store.record({ amend: { deliveries: [{ ...now, ...was }] } });
  }
});

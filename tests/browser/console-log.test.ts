/** The log in the console: it is filtered, exported, verified in the page, and whoever altered it is noticed. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { signedEveryMs } from '../../src/audit/checkpoints.ts';
import { day } from '../../src/base/clock.ts';
import { withoutBrowser } from '../support/browser.ts';
import {
  administratorCode,
  button,
  consoleOf,
  type Desk,
  newWatchedPage,
  openPage,
  violationsOn,
} from '../support/console-pages.ts';
import { onBothEngines } from '../support/engines.ts';
import { alterNewestEntry, linesOfLog, signCheckpoints } from '../support/logs.ts';
import { untilUsed } from '../support/tenant.ts';

onBothEngines('the log in the console', (engine) => {
  if (withoutBrowser) {
    test('the log in the console', { skip: withoutBrowser }, () => undefined);
    return;
  }
  const { browser, newDesk } = consoleOf(engine);

  /** What happened until now is signed. */
  async function sign({ tenant }: Desk): Promise<void> {
    await untilUsed(tenant, tenant.key);
    tenant.vault.clock.advance(signedEveryMs);
    await tenant.send('GET', '/tokens/absent');
    assert.ok((await signCheckpoints(tenant.vault)) > 0);
  }

  test('entries are filtered by what the API filters by, and exported as lines of JSON', async () => {
    const { tenant, page, complaints } = await newDesk();
    assert.equal((await tenant.send('GET', `/tokens/card-${tenant.id}`)).status, 200);
    assert.equal((await tenant.send('GET', '/tokens/absent')).status, 404);
    await openPage(page, 'Log');
    await page.getByLabel('Entity type').selectOption('token');
    await page.getByLabel('Token or other id').fill(`card-${tenant.id}`);
    await page.keyboard.press('Enter');
    await page.getByLabel('Shown').selectOption('revealed');
    await page.waitForURL(/shown=revealed/);
    await page.locator('main [aria-busy=true]').first().waitFor({ state: 'detached' });
    assert.equal(await page.locator('tbody tr').count(), 1);
    const download = page.waitForEvent('download');
    await button(page, 'Export').click();
    const lines = (await readFile(await (await download).path(), 'utf8')).trim().split('\n');
    assert.equal(lines.length, 1);
    assert.equal(JSON.parse(lines[0] ?? '').entity_id, `card-${tenant.id}`);
    await page.getByRole('link', { name: 'Clear filters' }).click();
    await page.getByText('Person signed in to the console').first().waitFor();
    assert.deepEqual(complaints, []);
  });

  test('an export is verified in the page against a kept checkpoint, and nothing of it is sent', async () => {
    const desk = await newDesk();
    const { tenant, page, complaints } = desk;
    await sign(desk);
    const key = tenant.managementKey;
    const { body: kept } = await tenant.send('GET', '/logs/checkpoint', { key });
    const whole = await linesOfLog(tenant.vault, tenant.id);
    // What is signed after the export is no finding.
    await sign(desk);
    const entry = /"entity_id":"card-[^"]+"/;
    assert.match(whole, entry);
    await openPage(page, 'Log');
    const sent: string[] = [];
    page.on('request', (request) => sent.push(`${request.method()} ${request.postData() ?? ''}`));
    await button(page, 'Verify').click();
    const dialog = page.getByRole('dialog', { name: 'Verify the log' });
    const verify = async (log: string, checkpoint: object) => {
      const file = (name: string, text: string) => ({
        ...{ name, mimeType: 'application/x-ndjson' },
        buffer: Buffer.from(text),
      });
      await dialog.getByLabel('Exported log').setInputFiles(file('log.jsonl', log));
      const place = dialog.getByLabel(/^Checkpoint that you kept/);
      const lines = `${JSON.stringify(kept)}\n${JSON.stringify(checkpoint)}\n`;
      await place.setInputFiles(file('checkpoints.ndjson', lines));
      await dialog.getByRole('button', { name: 'Verify', exact: true }).click();
    };
    await verify(whole, kept);
    await dialog.getByText(/^The log is intact: \d+ entries/).waitFor();
    await verify(whole.replace(entry, '"entity_id":"another"'), kept);
    await dialog.getByText('The log was altered:').waitFor();
    await verify(whole, { ...kept, signature: Buffer.alloc(64).toString('base64') });
    await dialog.getByText('The log was altered:').waitFor();
    assert.deepEqual(await violationsOn(page), []);
    assert.ok(
      sent.every((one) => one === 'GET '),
      sent.join(),
    );
    assert.deepEqual(complaints, []);
  });

  test('who alters the log is among the problems, which lead to what was found', async () => {
    const desk = await newDesk();
    const { tenant, page, complaints } = desk;
    await openPage(page, 'Problems');
    await page.getByText('No problems found').waitFor();
    await sign(desk);
    await tenant.token({ type: 'token', data: 'x' });
    await sign(desk);
    await alterNewestEntry(engine, tenant);
    await openPage(page, 'Overview');
    await page.getByText('altered before that').waitFor();
    await openPage(page, 'Problems');
    await page.getByRole('link', { name: /the log before checkpoint \d+ is not as/ }).click();
    await page.getByRole('button', { name: /verify failed/ }).waitFor();
    await page.getByText('Something before that is not as it was written.').waitFor();
    await page.getByRole('link', { name: 'Clear filters' }).click();
    await page.getByText('Alert: the log is not as it was written').waitFor();
    assert.deepEqual(await violationsOn(page), []);
    assert.deepEqual(complaints, []);
  });

  test('a log that nobody has verified for a month is a problem, which its page mends', async () => {
    const desk = await newDesk();
    const { tenant, context } = desk;
    await sign(desk);
    await context.close();
    tenant.vault.clock.advance(31 * day);
    const later = await browser().newContext();
    const { page, complaints } = await newWatchedPage(later);
    // Who opens the overview has the log verified.
    await page.goto(`${tenant.vault.url}/console/problems#${await administratorCode(tenant)}`);
    await page.getByText('send GET /logs/verification once a day').waitFor();
    await page.getByRole('link', { name: 'has waited for a verification' }).click();
    await page.getByText('verified up to').waitFor();
    await openPage(page, 'Problems');
    await page.getByText('No problems found').waitFor();
    assert.deepEqual(complaints, []);
    await later.close();
  });
});

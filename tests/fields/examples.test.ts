/** The examples: each collects a card in a browser as a customer would, and its pictures are those of the docs. */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { startBrowser, withoutBrowser } from '../support/browser.ts';
import { installed, reasonWithout } from '../support/development-packages.ts';
import { startExample } from '../support/examples.ts';
import { takePicture } from '../support/pictures.ts';
import type { Lender } from '../support/temporary.ts';

const vue = await installed('vue');
const skip = withoutBrowser || reasonWithout({ vue });

suite('Examples', { skip }, () => {
  const given: (() => void | Promise<void>)[] = [];
  const lender: Lender = { after: (give) => void given.push(give) };
  let url: string;
  // biome-ignore lint/suspicious/noExplicitAny: the package is installed only for development
  let browser: any;

  before(async () => {
    url = await startExample(lender, 'checkout');
    browser = await startBrowser(lender);
  });
  after(async () => {
    for (const give of given.reverse()) await give();
  });

  for (const name of ['plain', 'react', 'vue']) {
    test(`${name}: a card is saved, and the page shows it masked`, async (t) => {
      const page = await browser.newPage({ viewport: { width: 480, height: 560 } });
      t.after(() => page.close());
      const complaints: string[] = [];
      page.on('console', (message: { text(): string }) => complaints.push(message.text()));
      page.on('pageerror', (error: Error) => complaints.push(error.message));
      await page.goto(url.replace('checkout', name));
      const field = (id: string) => page.frameLocator(`#${id} iframe`).locator('input');
      await field('code').fill('123');
      await page.click('button');
      const error = page.frameLocator('#number iframe').locator('.error:not(:empty)');
      assert.equal(await error.textContent(), 'Fill in this field.');
      await field('number').fill('4242424242424242');
      await field('expiry').fill('1234');
      await page.click('button');
      assert.match(
        await page.locator('#result:not(:empty)').textContent(),
        /^Saved: XXXXXXXXXXXX4242( \(visa\))?$/,
      );
      if (name === 'plain') await takePicture(page.locator('main'), 'fields-saved');
      assert.deepEqual(
        complaints.filter((text) => !/favicon|404/.test(text)),
        [],
      );
    });
  }

  test('checkout: the card is charged through a proxy, and shown to its owner again', async (t) => {
    const page = await browser.newPage({ viewport: { width: 480, height: 560 } });
    t.after(() => page.close());
    await page.goto(url);
    const field = (at: number) => page.frameLocator('#card iframe').locator('input').nth(at);
    await field(0).fill('5555555555554444');
    await field(1).fill('0733');
    await field(2).fill('321');
    await takePicture(page.locator('main'), 'fields-checkout');
    await page.click('text=Pay');
    const result = await page.locator('#result:not(:empty)').textContent();
    assert.match(result, /^Paid with the card that ends in 4444/);
    await page.click('text=Show it');
    const shown = page.frameLocator('#paid iframe').locator('output');
    assert.equal(await shown.textContent(), '5555 5555 5555 4444');
    // The frame says how high it is once it shows the card.
    await page.locator('#paid iframe:not([style*="height: 76px"])').waitFor();
    await takePicture(page.locator('main'), 'fields-shown');
  });
});

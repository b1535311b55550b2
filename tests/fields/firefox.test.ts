/** Card fields in Firefox: the main paths of the examples, and what keeps pages of other origins out. */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import {
  allElements,
  assertNoDigits,
  cardNumber,
  createCard,
  recording,
} from '../support/card-fields.ts';
import { engineOf } from '../support/engines.ts';
import { startExample } from '../support/examples.ts';
import { type FirefoxPage, openFirefox, withoutFirefox } from '../support/firefox.ts';
import { openShop, publicApplication, withLoader } from '../support/shop.ts';
import type { Lender } from '../support/temporary.ts';
import { revealEverything, startVault } from '../support/vault.ts';

if (withoutFirefox) process.stdout.write(`No test in Firefox: ${withoutFirefox}\n`);

suite('Card fields in Firefox', { skip: withoutFirefox }, () => {
  const given: (() => void | Promise<void>)[] = [];
  const lender: Lender = { after: (give) => void given.push(give) };
  let page: FirefoxPage;

  before(async () => {
    page = await openFirefox(lender);
  });
  after(async () => {
    for (const give of given.reverse()) await give();
  });

  test('a card is typed and stored, the page gets a masked token, and its owner sees it again', async (t) => {
    const vault = await startVault(t, engineOf('sqlite'));
    const shop = await openShop(t);
    const key = await publicApplication(vault, [shop.origin]);
    const reveal = '<strongroom-reveal id="shown" format="card"></strongroom-reveal>';
    await page.goto(shop.page(withLoader(vault, allElements + reveal + recording(key))));
    await page.type(cardNumber, 'Card number');
    const input = "document.querySelector('input').value";
    assert.equal(await page.evaluate(input, 'Card number'), '4242 4242 4242 4242');
    await page.type('1230', 'Expiration date');
    await page.type('987', 'Security code');
    const token = await page.evaluate(`${createCard}.catch(failed)`);
    assert.equal(token.data?.number, 'XXXXXXXXXXXX4242', JSON.stringify(token));
    const server = await vault.application();
    const { body } = await vault.send('GET', `/tokens/${token.id}`, { key: server });
    assert.deepEqual([body.data.number, body.data.cvc], [cardNumber, '987']);
    const { nonce } = await page.evaluate('fields.sessions.create()');
    const rules = [{ ...revealEverything, permissions: ['token:read'] }];
    await vault.send('POST', '/sessions/authorize', { key: server, body: { nonce, rules } });
    await page.evaluate(`byId('shown').show({ token: '${token.id}' })`);
    const shown = await page.evaluate("document.querySelector('output').textContent", 'Value');
    assert.equal(shown, '4242 4242 4242 4242');
    const seen = await page.evaluate(
      '[events.map(({ detail }) => detail ?? null), document.documentElement.outerHTML]',
    );
    assertNoDigits(JSON.stringify([seen, token]));
    const read = await page.evaluate(`(() => {
      try { return document.querySelector('iframe').contentWindow.document.title; }
      catch (error) { return error.name; }
    })()`);
    assert.equal(read, 'SecurityError');
  });

  test('a page whose origin is not listed gets no frame, and a sentence', async (t) => {
    const vault = await startVault(t, engineOf('sqlite'));
    const shop = await openShop(t);
    const key = await publicApplication(vault, ['https://shop.example.com']);
    const html = '<strongroom-card id="card" locale="de"></strongroom-card>';
    await page.goto(shop.page(withLoader(vault, html + recording(key, ', timeoutMs: 1'))));
    await page.until("events.some(({ type }) => type === 'error')");
    const { detail } = await page.evaluate("events.find(({ type }) => type === 'error')");
    assert.equal(detail.code, 'origin_not_listed');
    assert.match(detail.customerMessage, /konnte nicht geladen werden/);
  });

  test('each example saves a card', async (t) => {
    const url = await startExample(t, 'plain');
    for (const name of ['plain', 'react', 'vue']) {
      await page.goto(url.replace('plain', name));
      await page.type(cardNumber, 'Card number');
      await page.type('1234', 'Expiration date');
      await page.type('123', 'Security code');
      await page.evaluate("document.querySelector('button').click()");
      await page.until("document.querySelector('#result').textContent !== ''");
      const result = await page.evaluate("document.querySelector('#result').textContent");
      assert.match(result, /^Saved: XXXXXXXXXXXX4242/);
    }
  });
});

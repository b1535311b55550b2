/** A browser that has a card fills all fields of a page at once, each in its own frame, and the page gets no digit. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startWholeBrowser, withoutWholeBrowser } from '../support/browser.ts';
import {
  allElements,
  assertNoDigits,
  cardNumber,
  createCard,
  enter,
  frameOf,
  inputIn,
  ready,
  recording,
  until,
} from '../support/card-fields.ts';
import { engineOf } from '../support/engines.ts';
import { openShop, publicApplication, withLoader } from '../support/shop.ts';
import { startVault } from '../support/vault.ts';

/** What the browser has: https://chromedevtools.github.io/devtools-protocol/tot/Autofill/ */
const card = {
  number: cardNumber,
  name: 'Ada Lovelace',
  expiryMonth: '12',
  expiryYear: '2030',
  cvc: '987',
};

for (const [name, html, first, places] of [
  [
    'fields of their own',
    allElements,
    'number',
    [
      ['number', 0],
      ['expiry', 0],
      ['code', 0],
    ],
  ],
  [
    'one field for all',
    '<strongroom-card id="card"></strongroom-card>',
    'card',
    [
      ['card', 0],
      ['card', 1],
      ['card', 2],
    ],
  ],
] as const) {
  test(`autofill completes a card: ${name}`, { skip: withoutWholeBrowser }, async (t) => {
    const vault = await startVault(t, engineOf('sqlite'));
    const shop = await openShop(t);
    const key = await publicApplication(vault, [shop.origin]);
    const browser = await startWholeBrowser(t);
    const page = await browser.newPage();
    await page.goto(shop.page(withLoader(vault, html + recording(key))));
    await ready(page, new Set(places.map(([id]) => id)).size);
    await enter(page, first);
    const frame = await frameOf(page, first);
    const session = await page.context().newCDPSession(frame);
    const { frameTree } = await session.send('Page.getFrameTree');
    const { root } = await session.send('DOM.getDocument', { depth: -1 });
    const found = { nodeId: root.nodeId, selector: '[autocomplete=cc-number]' };
    const { nodeId } = await session.send('DOM.querySelector', found);
    const { node } = await session.send('DOM.describeNode', { nodeId });
    const trigger = { fieldId: node.backendNodeId, frameId: frameTree.frame.id, card };
    // The browser knows the fields a moment after they are there.
    await until(
      () =>
        session.send('Autofill.trigger', trigger).then(
          () => 'filled',
          (error: Error) => error.message,
        ),
      'filled',
    );
    const values = () => Promise.all(places.map(([id, at]) => inputIn(page, id, at).inputValue()));
    await until(values, ['4242 4242 4242 4242', '12 / 30', '987']);
    const request = first === 'card' ? createCard.replace('card()', "byId('card')") : createCard;
    const token = await page.evaluate(`${request}.catch(failed)`);
    assert.equal(token.data?.number, 'XXXXXXXXXXXX4242', JSON.stringify(token));
    assertNoDigits(JSON.stringify([token, await page.evaluate('events')]));
  });
}

/** Fields for everybody: 12 languages, both directions, large letters, colors of the customer, and autofill. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import words from '../../packages/fields/src/frame/words.json' with { type: 'json' };
import { withoutBrowser } from '../support/browser.ts';
import {
  allElements,
  type CardFields,
  cardNumber,
  createCard,
  frameOf,
  inputIn,
  type Page,
  ready,
  recording,
  startCardFields,
  until,
} from '../support/card-fields.ts';
import { installed, reasonWithout } from '../support/development-packages.ts';
import { withLoader } from '../support/shop.ts';
import { type Lender, temporaryDirectory } from '../support/temporary.ts';
import { revealEverything } from '../support/vault.ts';

const axe = await installed('axe-core');
const skip = reasonWithout({ 'axe-core': axe }) || withoutBrowser;

const languages = Object.entries(words) as [keyof typeof words, (typeof words)['en']][];

test('there are 12 languages, and each has its own sentence for all that can be wrong', () => {
  assert.deepEqual(
    languages.map(([language]) => language),
    ['en', 'de', 'fr', 'es', 'it', 'pt', 'nl', 'pl', 'sv', 'ja', 'zh', 'ar'],
  );
  const names = Object.keys(words.en);
  for (const [language, own] of languages) {
    assert.deepEqual(Object.keys(own), names, language);
    for (const [name, text] of Object.entries(own)) {
      assert.ok(text.trim() === text && text !== '', `${language} ${name}`);
      const isSentence = /[.。]$/.test(words.en[name as keyof typeof words.en]);
      assert.equal(/[.。]$/.test(text), isSentence, `${language} ${name}`);
      if (language !== 'en' && isSentence) {
        assert.notEqual(text, words.en[name as keyof typeof words.en], `${language} ${name}`);
      }
    }
  }
});

suite('The look of card fields', { skip }, () => {
  const given: (() => void | Promise<void>)[] = [];
  const lender: Lender = { after: (give) => void given.push(give) };
  let world: CardFields;

  before(async () => {
    const table = join(temporaryDirectory(lender), 'bins.csv');
    writeFileSync(table, 'bin_min,bin_max,brand\n400000,400000,mastercard\n40000025,,visa\n');
    world = await startCardFields(lender, { STRONGROOM_BIN_TABLE: table });
  });
  after(async () => {
    for (const give of given.reverse()) await give();
  });

  const html = (body: string) => withLoader(world.vault, body + recording(world.key));
  const source = () =>
    readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

  /** By axe, in the frame alone. */
  async function violationsIn(frame: Page): Promise<string[]> {
    await frame.evaluate(source());
    // The page shows through a frame; its canvas stands for it.
    await frame.evaluate("document.documentElement.style.background = 'Canvas'");
    const { violations } = await frame.evaluate(
      "axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa'], iframes: false })",
    );
    return violations.map(({ id }: { id: string }) => id);
  }

  /** What a frame shows is neither cut off nor scrolled. */
  async function assertWhole(page: Page, id: string): Promise<void> {
    const frame = await frameOf(page, id);
    const hidden = `[document.documentElement.scrollWidth > innerWidth,
      Math.ceil(document.body.getBoundingClientRect().height) > innerHeight]`;
    await until(() => frame.evaluate(hidden), [false, false]);
  }

  test('labels, errors, and the title of a frame are in the language of the field, and fit a phone', async (t) => {
    const elements = languages.map(
      ([language]) =>
        `<strongroom-card id="${language}" locale="${language}-XX"></strongroom-card>`,
    );
    const { page } = await world.open(t, html(elements.join('')), {
      viewport: { width: 320, height: 900 },
    });
    await ready(page, languages.length);
    for (const [language, own] of languages) {
      const frame = await frameOf(page, language);
      const refused = await page.evaluate(
        `fields.tokens.create({ type: 'card', data: byId('${language}') }).catch(failed)`,
      );
      assert.equal(refused.code, 'incomplete');
      const shown =
        await frame.evaluate(`[document.documentElement.lang, document.documentElement.dir,
        ...[...document.querySelectorAll('label, .error')].map((one) => one.textContent)]`);
      const labels = [own.number, own.required, own.expiry, own.required, own.code, own.required];
      const direction = language === 'ar' ? 'rtl' : 'ltr';
      assert.deepEqual(shown, [language, direction, ...labels]);
      const title = await page.locator(`#${language} iframe`).getAttribute('title');
      assert.equal(title, [own.number, own.expiry, own.code].join(', '));
      await assertWhole(page, language);
    }
  });

  test('the title of a frame follows the label that the page gives, and its language', async (t) => {
    const { page } = await world.open(
      t,
      html('<strongroom-card-code id="code"></strongroom-card-code>'),
    );
    await ready(page, 1);
    const title = () => page.locator('#code iframe').getAttribute('title');
    await until(title, 'Security code');
    await page.evaluate("byId('code').setAttribute('locale', 'ja')");
    await until(title, words.ja.code);
    await page.evaluate("byId('code').setAttribute('label', 'CVC')");
    await until(title, 'CVC');
  });

  test('from right to left, labels are on the right, and numbers keep their order', async (t) => {
    const body = '<strongroom-card id="card" dir="rtl" locale="ar"></strongroom-card>';
    const { page } = await world.open(t, html(body).replace('<html', '<html dir="rtl"'));
    await ready(page, 1);
    await inputIn(page, 'card').fill('42424242');
    const frame = await frameOf(page, 'card');
    const [isRight, direction, align, value] = await frame.evaluate(`(() => {
      const range = document.createRange();
      range.selectNodeContents(document.querySelector('label'));
      const input = document.querySelector('input');
      return [innerWidth - range.getBoundingClientRect().right < 4, input.dir, getComputedStyle(input).textAlign,
        input.value];
    })()`);
    assert.deepEqual([isRight, direction, align, value], [true, 'ltr', 'end', '4242 4242']);
    // The expiration date is to the right of the code.
    const [expiry, code] = await frame.evaluate(
      "[...document.querySelectorAll('.half')].map((one) => one.getBoundingClientRect().left)",
    );
    assert.ok(expiry > code);
    assert.deepEqual(await violationsIn(frame), []);
  });

  test('with letters of twice the size, in a narrow window, nothing is cut off', async (t) => {
    const style = '<style>:root { --strongroom-font-size: 32px }</style>';
    const body = `${style}<strongroom-card id="card"></strongroom-card>
      <strongroom-bank-account id="bank"></strongroom-bank-account><strongroom-file id="file"></strongroom-file>`;
    const { page } = await world.open(t, html(body), { viewport: { width: 320, height: 900 } });
    await ready(page, 3);
    await inputIn(page, 'card').fill('4242424242424241');
    for (const id of ['card', 'bank', 'file']) await assertWhole(page, id);
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 320);
  });

  test('with colors of the customer, the focus, the choice and a shown card can be seen', async (t) => {
    const body = `<strongroom-card-number id="number"></strongroom-card-number>
      <strongroom-reveal id="text"></strongroom-reveal><strongroom-reveal id="face" format="card"></strongroom-reveal>`;
    for (const colorScheme of ['light', 'dark'] as const) {
      const { page } = await world.open(t, html(body), { forcedColors: 'active', colorScheme });
      await ready(page, 3);
      const server = await world.vault.application();
      const data = { number: cardNumber, expiration_month: 12, expiration_year: 2030, cvc: '123' };
      const token = await world.vault.send('POST', '/tokens', {
        key: server,
        body: { type: 'card', data },
      });
      const { nonce } = await page.evaluate('fields.sessions.create()');
      const rules = [{ ...revealEverything, permissions: ['token:read'] }];
      await world.vault.send('POST', '/sessions/authorize', {
        key: server,
        body: { nonce, rules },
      });
      await page.evaluate(`byId('text').show({ token: '${token.body.id}', path: 'data.number' })`);
      await page.evaluate(`byId('face').show({ token: '${token.body.id}' })`);
      await inputIn(page, 'number').fill('4000002500001001');
      const radio = page.frameLocator('#number iframe').getByRole('radio');
      await radio.nth(1).waitFor();
      const outlineOf =
        "(one) => getComputedStyle(one).outlineStyle + ' ' + getComputedStyle(one).outlineWidth";
      const number = await frameOf(page, 'number');
      await inputIn(page, 'number').focus();
      assert.equal(
        await number.evaluate(`(${outlineOf})(document.querySelector('.box'))`),
        'solid 2px',
      );
      assert.equal(
        await number.evaluate(`(${outlineOf})(document.querySelector(':checked + .badge'))`),
        'solid 2px',
      );
      const face = await frameOf(page, 'face');
      const image = "getComputedStyle(document.querySelector('.face')).backgroundImage";
      assert.equal(await face.evaluate(image), 'none');
      for (const id of ['number', 'text', 'face']) {
        assert.deepEqual(await violationsIn(await frameOf(page, id)), [], `${colorScheme} ${id}`);
      }
    }
  });

  test('a shown value has no accessibility violation, light or dark', async (t) => {
    const body = `<style>:root { color-scheme: light dark }</style><strongroom-reveal id="text"></strongroom-reveal>
      <strongroom-reveal id="face" format="card" locale="ar"></strongroom-reveal>`;
    const server = await world.vault.application();
    const data = { number: cardNumber, expiration_month: 12, expiration_year: 2030 };
    const card = { type: 'card', data };
    const token = await world.vault.send('POST', '/tokens', { key: server, body: card });
    for (const colorScheme of ['light', 'dark'] as const) {
      const { page } = await world.open(t, html(body), { colorScheme });
      await ready(page, 2);
      const { nonce } = await page.evaluate('fields.sessions.create()');
      const rules = [{ ...revealEverything, permissions: ['token:read'] }];
      await world.vault.send('POST', '/sessions/authorize', {
        key: server,
        body: { nonce, rules },
      });
      for (const id of ['text', 'face']) {
        await page.evaluate(`byId('${id}').show({ token: '${token.body.id}' })`);
        assert.deepEqual(await violationsIn(await frameOf(page, id)), [], `${colorScheme} ${id}`);
      }
    }
  });

  test('a browser or a password manager knows each input, and fills it in any of the usual forms', async (t) => {
    const body = `<strongroom-card id="card"></strongroom-card>${allElements}`;
    const { page } = await world.open(t, html(body));
    await ready(page, 4);
    const known = `[...document.querySelectorAll('form input')].map((input) => [input.autocomplete, input.name])`;
    const names = ['cc-number', 'cc-exp', 'cc-csc'].map((name) => [name, name]);
    assert.deepEqual(await (await frameOf(page, 'card')).evaluate(known), names);
    for (const [at, id] of ['number', 'expiry', 'code'].entries()) {
      assert.deepEqual(await (await frameOf(page, id)).evaluate(known), [names[at]]);
    }
    /** As browsers fill: the whole value at once, without a key. */
    const fill = (name: string, value: string) => `(() => {
      const input = document.querySelector('[autocomplete=${name}]');
      input.value = '${value}';
      input.dispatchEvent(new InputEvent('input', { bubbles: true, inputType: 'insertReplacementText' }));
      input.dispatchEvent(new Event('change', { bubbles: true }));
      return input.value;
    })()`;
    const frame = await frameOf(page, 'card');
    for (const value of ['4242 4242 4242 4242', '4242-4242-4242-4242', cardNumber]) {
      assert.equal(await frame.evaluate(fill('cc-number', value)), '4242 4242 4242 4242');
    }
    for (const value of ['12/2030', '12/30', '2030-12', '12 / 30', '1230', '12-2030']) {
      assert.equal(await frame.evaluate(fill('cc-exp', value)), '12 / 30', value);
    }
    assert.equal(await frame.evaluate(fill('cc-csc', '123')), '123');
    await page.waitForFunction("byId('card').state.complete");
    const token = await page.evaluate(createCard.replace('card()', "byId('card')"));
    assert.deepEqual([token.data.number, token.data.expiration_year], ['XXXXXXXXXXXX4242', 2030]);
  });

  test('the network of a card is chosen by keys, and a new number has a new choice', async (t) => {
    const body = '<strongroom-card-number id="number" locale="fr"></strongroom-card-number>';
    const { page } = await world.open(t, html(body));
    await ready(page, 1);
    await inputIn(page, 'number').fill('4000002500001001');
    const radio = page.frameLocator('#number iframe').getByRole('radio');
    await radio.nth(1).waitFor();
    const chosen = () => page.evaluate("byId('number').state.selectedBrand");
    await until(chosen, 'visa');
    await inputIn(page, 'number').press('Tab');
    await page.keyboard.press('ArrowRight');
    await until(chosen, 'mastercard');
    const frame = await frameOf(page, 'number');
    assert.equal(
      await frame.evaluate("document.querySelector('legend').textContent"),
      words.fr.network,
    );
    assert.deepEqual(await violationsIn(frame), []);
    await inputIn(page, 'number').fill(cardNumber);
    await until(() => page.evaluate("byId('number').state.brands ?? null"), null);
    assert.equal(await radio.count(), 0);
  });
});

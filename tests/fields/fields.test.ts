/** Card fields in a browser: what is typed reaches the vault, and no page reads a digit of it, however hostile. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { withoutBrowser } from '../support/browser.ts';
import {
  allElements,
  assertNoDigits,
  type CardFields,
  cardNumber,
  enter,
  inputIn,
  ready,
  recording,
  settled,
  startCardFields,
  typeCard,
  until,
} from '../support/card-fields.ts';
import { installed, reasonWithout } from '../support/development-packages.ts';
import { createProxy } from '../support/proxies.ts';
import { type Called, startCalled } from '../support/proxy-calls.ts';
import { openShop, publicApplication, type Shop, withLoader } from '../support/shop.ts';
import { type Lender, temporaryDirectory } from '../support/temporary.ts';
import { newTenant } from '../support/tenant.ts';
import { managementKey, revealEverything, type TestVault } from '../support/vault.ts';

const axe = await installed('axe-core');
const skip = reasonWithout({ 'axe-core': axe }) || withoutBrowser;

/** As much of an input as tests read in the browser. */
interface TypedInput {
  readonly selectionStart: number | null;
  readonly inputMode: string;
  readonly autocomplete: string;
}

/** As from a card reader or a program that types: no key waits until the one before it had its effect. */
// biome-ignore lint/suspicious/noExplicitAny: the package is installed only for development
async function typeAtOnce(page: any, keys: readonly string[]): Promise<void> {
  const session = await page.context().newCDPSession(page);
  const pressed = keys.map((name) => {
    const isTab = name.endsWith('Tab');
    const key = isTab
      ? { key: 'Tab', code: 'Tab', windowsVirtualKeyCode: 9 }
      : { key: name, text: name, windowsVirtualKeyCode: name.charCodeAt(0) };
    const event = { type: isTab ? 'rawKeyDown' : 'keyDown', ...key };
    const modifiers = name.startsWith('Shift') ? 8 : 0;
    return session.send('Input.dispatchKeyEvent', { ...event, modifiers });
  });
  await Promise.all(pressed);
}

suite('Card fields', { skip }, () => {
  const given: (() => void | Promise<void>)[] = [];
  const lender: Lender = { after: (give) => void given.push(give) };
  let vault: TestVault;
  let shop: Shop;
  let key: string;
  // biome-ignore lint/suspicious/noExplicitAny: the package is installed only for development
  let browser: any;
  let open: CardFields['open'];
  let called: Called;

  before(async () => {
    called = await startCalled(lender);
    const table = join(temporaryDirectory(lender), 'bins.csv');
    writeFileSync(table, 'bin_min,bin_max,brand\n400000,400000,mastercard\n40000025,,visa\n');
    ({ vault, shop, key, browser, open } = await startCardFields(lender, {
      ...called.environment,
      STRONGROOM_BIN_TABLE: table,
    }));
  });
  after(async () => {
    for (const give of given.reverse()) await give();
  });

  test('the example of the tutorial: Tab leads through the fields, and the token is masked', async (t) => {
    const { page, complaints } = await open(t, withLoader(vault, allElements + recording(key)));
    await typeCard(page);
    const token = await page.evaluate("fields.tokens.create({ type: 'card', data: card() })");
    assert.equal(token.data.number, 'XXXXXXXXXXXX4242');
    const reader = await vault.application();
    const { body } = await vault.send('GET', `/tokens/${token.id}`, { key: reader });
    assert.deepEqual(body.data, {
      number: cardNumber,
      expiration_month: 12,
      expiration_year: 2030,
      cvc: '987',
    });
    const events = await page.evaluate('events');
    const last = events.filter((one: { id: string }) => one.id === 'number').at(-1);
    assert.deepEqual(
      [last.detail.brand, last.detail.lastFour, last.detail.complete],
      ['visa', '4242', true],
    );
    assertNoDigits(JSON.stringify([token, events]));
    assert.deepEqual(
      complaints.filter((text) => !/favicon|404/.test(text)),
      [],
    );
  });

  test('keys that come faster than a browser moves the focus between frames are not lost', async (t) => {
    const fields = allElements.replaceAll('\n', '<input type="hidden">');
    const html = `${fields}<input id="email">${recording(key)}`;
    const { page } = await open(t, withLoader(vault, html));
    await ready(page, 3);
    await settled(page);
    await enter(page, 'number');
    await typeAtOnce(page, [...cardNumber, 'Tab', ...'1230', 'Tab', ...'98']);
    const values = () =>
      Promise.all(['number', 'expiry', 'code'].map((id) => inputIn(page, id).inputValue()));
    await until(values, ['4242 4242 4242 4242', '12 / 30', '98']);
    // Back with Shift, where Tab selects what is there, so that the next key replaces it.
    await typeAtOnce(page, ['7', 'Shift+Tab', ...'0131', 'Tab', ...'1234']);
    await until(values, ['4242 4242 4242 4242', '01 / 31', '1234']);
    await page.keyboard.press('Tab');
    await page.waitForFunction("document.activeElement === byId('email')");
    // What stands between two fields is not skipped.
    await page.evaluate(
      "byId('expiry').before(Object.assign(document.createElement('a'), { href: '#', id: 'link' }))",
    );
    await enter(page, 'number');
    await settled(page);
    await page.keyboard.press('Tab');
    await page.waitForFunction("document.activeElement === byId('link')");
  });

  test('a complete line moves the focus on, and a Tab out of habit skips nothing', async (t) => {
    const html = `<strongroom-card id="card"></strongroom-card><input id="email">${recording(key)}`;
    const { page } = await open(t, withLoader(vault, html));
    await ready(page, 1);
    const inputs = page.frameLocator('#card iframe').locator('input');
    const values = () => Promise.all([0, 1, 2].map((at) => inputs.nth(at).inputValue()));
    await inputs.nth(0).click();
    await typeAtOnce(page, [...cardNumber, 'Tab', ...'1230', 'Tab', ...'98']);
    await until(values, ['4242 4242 4242 4242', '12 / 30', '98']);
    // The customer left the last line, which no program had entered.
    await page.keyboard.press('Tab');
    await page.waitForFunction("document.activeElement === byId('email')");
    // The second Tab in an empty line is meant, as is each one backwards.
    await page.evaluate("byId('card').clear()");
    await inputs.nth(0).click();
    await typeAtOnce(page, [...cardNumber, 'Tab', 'Tab', ...'123']);
    await until(values, ['4242 4242 4242 4242', '', '123']);
    await page.evaluate("byId('card').clear()");
    await inputs.nth(0).click();
    await typeAtOnce(page, [...cardNumber, 'Shift+Tab', '7']);
    await until(values, ['7', '', '']);
  });

  test('what is typed is written as people write it, and the caret stays where it was', async (t) => {
    const { page } = await open(
      t,
      withLoader(
        vault,
        `${allElements}<strongroom-card id="card"></strongroom-card>
<strongroom-text id="text" mask="000-00-0000" label="SSN"></strongroom-text>${recording(key)}`,
      ),
    );
    await ready(page, 5);
    const number = inputIn(page, 'number');
    const caret = () => number.evaluate((input: TypedInput) => input.selectionStart);
    await number.fill(' 3782-8224 6310005 ');
    assert.equal(await number.inputValue(), '3782 822463 10005');
    await number.fill('');
    await enter(page, 'number');
    await page.keyboard.type('42424');
    assert.equal(await number.inputValue(), '4242 4');
    await number.press('Home');
    await number.press('ArrowRight');
    await number.press('5');
    assert.deepEqual([await number.inputValue(), await caret()], ['4524 24', 2]);
    await number.press('End');
    await number.press('Backspace');
    await number.press('Backspace');
    await number.press('Backspace');
    assert.equal(await number.inputValue(), '452');
    const expiry = inputIn(page, 'expiry');
    for (const [typed, shown] of [
      ['9/31', '09 / 31'],
      ['2031-12', '12 / 31'],
      ['122031', '12 / 31'],
      ['5', '05 / '],
    ] as const) {
      await expiry.fill(typed);
      assert.equal(await expiry.inputValue(), shown);
    }
    await inputIn(page, 'text').fill('123456789');
    assert.equal(await inputIn(page, 'text').inputValue(), '123-45-6789');
    await enter(page, 'card');
    await page.keyboard.type(cardNumber);
    const focused = () =>
      page.frameLocator('#card iframe').locator(':focus').getAttribute('autocomplete');
    assert.equal(await focused(), 'cc-exp', 'a complete number leads on');
    const attributes = await inputIn(page, 'card', 2).evaluate((input: TypedInput) => [
      input.inputMode,
      input.autocomplete,
    ]);
    assert.deepEqual(attributes, ['numeric', 'cc-csc']);
  });

  test('an incomplete field refuses the request, says why in its language, and takes the focus', async (t) => {
    const { page } = await open(
      t,
      withLoader(
        vault,
        allElements.replace('id="number"', 'id="number" locale="de-AT"') + recording(key),
      ),
    );
    await ready(page, 3);
    await inputIn(page, 'number').fill('4242424242424241');
    const refusal = await page.evaluate(
      "fields.tokens.create({ type: 'card', data: card() }).catch(failed)",
    );
    assert.equal(refusal.code, 'incomplete');
    const error = page.frameLocator('#number iframe').locator('.error');
    assert.equal(await error.textContent(), 'Die Kartennummer ist ungültig.');
    const number = inputIn(page, 'number');
    assert.equal(await number.getAttribute('aria-describedby'), await error.getAttribute('id'));
    await page.waitForFunction("document.activeElement?.parentElement?.id === 'number'");
  });

  test('a field that is put elsewhere is empty, and nothing of it can be sent', async (t) => {
    const { page } = await open(
      t,
      withLoader(vault, `${allElements}<div id="other"></div>${recording(key)}`),
    );
    await typeCard(page);
    await page.evaluate("byId('other').append(byId('number'))");
    await ready(page, 4);
    const refusal = await page.evaluate(
      "fields.tokens.create({ type: 'card', data: card() }).catch(failed)",
    );
    assert.equal(refusal.code, 'incomplete');
    await page.evaluate(`(() => {
      window.number = byId('number');
      const id = number.elementId;
      number.remove();
      number.elementId = id;
    })()`);
    const create = "fields.tokens.create({ type: 'card', data: { number } })";
    await until(() => page.evaluate(`${create}.catch(({ code }) => code)`), 'field_missing');
  });

  test('frames cannot be read from outside, and a second connection to one is ignored', async (t) => {
    const { page } = await open(t, withLoader(vault, allElements + recording(key)));
    await typeCard(page);
    const attempts = await page.evaluate(`(async () => {
      const frame = byId('number').querySelector('iframe');
      const tried = (attempt) => { try { return String(attempt() ?? null); } catch (error) { return error.name; } };
      const channel = new MessageChannel();
      const heard = [];
      channel.port1.onmessage = ({ data }) => heard.push(data);
      const connect = { strongroom: 'connect', version: 1, element: 'x', kind: 'controller', options: {} };
      frame.contentWindow.postMessage(connect, '*', [channel.port2]);
      channel.port1.postMessage({ type: 'call', call: 1, request: { operation: 'sessions.create' } });
      await fields.tokens.create({ type: 'token', data: byId('number') });
      return [tried(() => frame.contentDocument), tried(() => frame.contentWindow.document),
        tried(() => frame.contentWindow.strongroomController),
        tried(() => frame.contentWindow.location.href), heard.length];
    })()`);
    assert.deepEqual(attempts, ['null', 'SecurityError', 'SecurityError', 'SecurityError', 0]);
  });

  test('a request takes values into data alone, without expressions, and not to another key or session', async (t) => {
    const foreign = await publicApplication(vault, [shop.origin], ['token:create']);
    const { body: session } = await vault.send('POST', '/sessions', { key: foreign });
    const server = await vault.application({
      name: 's',
      type: 'private',
      permissions: ['token:create'],
    });
    const granted = { nonce: session.nonce, permissions: ['token:create'] };
    assert.equal(
      (await vault.send('POST', '/sessions/authorize', { key: server, body: granted })).status,
      200,
    );
    const { page } = await open(t, withLoader(vault, allElements + recording(key)));
    await typeCard(page);
    const attempt = (code: string) => page.evaluate(`${code}.then((done) => ({ done }), failed)`);
    for (const [code, request] of [
      [
        'expression_refused',
        "tokens.create({ type: 'card', data: card(), id: '{{ data.number }}' })",
      ],
      [
        'expression_refused',
        "tokens.create({ type: 'card', data: card(), mask: '{{ data.number }}' })",
      ],
      [
        'expression_refused',
        "tokens.create({ type: 'card', data: card(), search_indexes: ['{{ data.number }}'] })",
      ],
      [
        'place_refused',
        "tokens.create({ type: 'token', data: 'x', metadata: { n: byId('number') } })",
      ],
      [
        'place_refused',
        "tokenize({ a: { type: 'token', data: 'x', metadata: { n: byId('number') } } })",
      ],
      ['path_refused', "proxy({ proxy: 'x', path: '/../tokens', body: { data: byId('number') } })"],
      [
        'path_refused',
        "proxy({ proxy: 'x', path: '/%2e%2e/tokens', body: { data: byId('number') } })",
      ],
      ['path_refused', "proxy({ proxy: 'x', path: '/a?svc-proxy-key=y', body: byId('number') })"],
      [
        'header_refused',
        "proxy({ proxy: 'x', headers: { 'SVC-PROXY-URL': 'https://evil' }, body: byId('number') })",
      ],
      [
        'header_refused',
        "proxy({ proxy: 'x', headers: { 'BT-API-KEY': 'y' }, body: byId('number') })",
      ],
      [
        'expression_refused',
        "proxy({ proxy: 'x', headers: { a: '{{ proxy.request.body }}' }, body: byId('number') })",
      ],
      [
        'expression_refused',
        "proxy({ proxy: 'x', path: '/%7B%7B proxy.request.body }}', body: byId('number') })",
      ],
      ['foreign_session', `useSession('${session.session_key}')`],
    ] as const) {
      const result = await attempt(`fields.${request}`);
      assert.equal(result.code, code, JSON.stringify([request, result]));
    }
    // The frame of the other key is there before the field, which could find it.
    await page.evaluate(`(async () => {
      window.other = Strongroom.fields({ key: '${foreign}' });
      await other.ready;
      document.body.append(byId('number'));
    })()`);
    await ready(page, 4);
    await inputIn(page, 'number').fill(cardNumber);
    const stolen = await attempt("other.tokens.create({ type: 'token', data: byId('number') })");
    assert.equal(stolen.code, 'field_missing');
    const tokenized = await attempt("fields.tokenize({ a: byId('number'), b: [byId('code')] })");
    assert.match(String(tokenized.done?.a), /^[0-9a-f-]{36}$/, JSON.stringify(tokenized));
  });

  test('a proxy gets the values, an echo is not passed on, and no proxy of another tenant gets any', async (t) => {
    called.destination.behave(async ({ response, received }) => {
      const text = (await received).body.toString();
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ approved: true, echo: text, parts: JSON.parse(text) }));
    });
    const body = { name: 'provider', destination_url: called.url, require_auth: true };
    const proxy = (await vault.send('POST', '/proxies', { key: managementKey, body })).body;
    // A proxy of another tenant takes calls of all who know its key.
    const stranger = await newTenant(vault);
    const open_ = { destination_url: called.url, require_auth: false };
    const foreign = await createProxy(stranger, open_);
    const reached = await vault.send('POST', '/proxy', {
      headers: { 'svc-proxy-key': foreign.key },
      body: {},
    });
    assert.equal(reached.status, 200, reached.text);
    const { page } = await open(t, withLoader(vault, allElements + recording(key)));
    await typeCard(page);
    const server = await vault.application({
      name: 's',
      type: 'private',
      permissions: ['proxy:invoke'],
    });
    const session = await page.evaluate('fields.sessions.create()');
    const granted = { nonce: session.nonce, permissions: ['proxy:invoke'] };
    await vault.send('POST', '/sessions/authorize', { key: server, body: granted });
    const paid = await page.evaluate(
      `fields.proxy({ proxy: '${proxy.key}', path: '/charges', body: { amount: 5, card: card() } }).catch(failed)`,
    );
    assert.deepEqual([paid.status, paid.body?.approved], [200, true], JSON.stringify(paid));
    assert.deepEqual(
      [paid.body.echo, paid.body.parts.card.number, paid.body.parts.card.cvc],
      [null, null, null],
    );
    const sent = JSON.parse(called.destination.requests.at(-1)?.body.toString() ?? '');
    assert.deepEqual(
      [sent.card.number, sent.card.expiration_year, sent.amount],
      [cardNumber, 2030, 5],
    );
    const count = called.destination.requests.length;
    const other = await page.evaluate(
      `fields.proxy({ proxy: '${foreign.key}', body: { card: card() } })`,
    );
    assert.equal(other.status, 404);
    assert.equal(called.destination.requests.length, count);
  });

  test('styles of the page reach the fields from a list, and nothing in them can fetch', async (t) => {
    const asked: string[] = [];
    const style = `<style>:root { --strongroom-text-color: rgb(1, 2, 3);
      --strongroom-background-color: url(${shop.origin}/leak);
      --strongroom-font-family: x; } strongroom-card-number { --strongroom-padding: 1px; color-scheme: dark; }
      input { background: url(${shop.origin}/leak2) } [value^="4"] { background: url(${shop.origin}/leak3) }</style>`;
    const { page } = await open(t, withLoader(vault, style + allElements + recording(key)));
    page.on('request', (request: { url(): string }) => asked.push(request.url()));
    await typeCard(page);
    // biome-ignore lint/suspicious/noExplicitAny: types of the browser are not here
    const shown = await inputIn(page, 'number').evaluate((input: any) => {
      const view = input.ownerDocument.defaultView;
      const { color, paddingLeft } = view.getComputedStyle(input);
      const { backgroundColor, backgroundImage } = view.getComputedStyle(input.parentElement);
      return { color, paddingLeft, background: backgroundColor, image: backgroundImage };
    });
    assert.deepEqual(shown, {
      color: 'rgb(1, 2, 3)',
      paddingLeft: '1px',
      background: 'rgb(27, 31, 38)',
      image: 'none',
    });
    assert.deepEqual(
      asked.filter((url) => url.includes('leak')),
      [],
    );
  });

  test('a request that is quicker than the frame of its field waits for it', async (t) => {
    const { page } = await open(t, withLoader(vault, recording(key)));
    const refusal = await page.evaluate(`(async () => {
      await fields.ready;
      const code = document.body.appendChild(fields.create('card-code'));
      return fields.tokens.create({ type: 'token', data: { code } }).catch(failed);
    })()`);
    assert.equal(refusal.code, 'incomplete');
  });

  test('a request of a page that replaced its body is refused, and does not wait for ever', async (t) => {
    const { page } = await open(t, withLoader(vault, recording(key)));
    await page.evaluate('fields.ready');
    await page.evaluate('document.body.replaceChildren()');
    const lost = await page.evaluate(`fields.tokenize({}).catch(failed)`);
    assert.equal(lost.code, 'field_removed');
  });

  test('a frame that was led elsewhere gives nothing', async (t) => {
    const { page } = await open(t, withLoader(vault, allElements + recording(key)));
    await typeCard(page);
    await page.evaluate("byId('number').querySelector('iframe').src = 'about:blank'");
    await page.waitForFunction("byId('number').querySelector('iframe').contentDocument !== null");
    // The process of the frame ends it a moment after the page has the new one.
    const create = "fields.tokens.create({ type: 'card', data: card() })";
    await until(() => page.evaluate(`${create}.catch(({ code }) => code)`), 'field_missing');
  });

  test('frames that the policy of the page forbids, and a published key, are named as the reason', async (t) => {
    const blocked = shop.page(
      withLoader(
        vault,
        `<strongroom-card id="card"></strongroom-card>${recording(key, ', timeoutMs: 1')}`,
      ),
      {
        'content-security-policy': "frame-src 'none'",
      },
    );
    const { page } = await open(t, blocked);
    await page.waitForFunction(
      "events.some(({ type, detail }) => type === 'error' && detail.code === 'frame_blocked')",
    );
    const secret = await vault.application();
    const thrown = await page.evaluate(
      `(() => { try { Strongroom.fields({ key: '${secret}' }); } catch (error) { return failed(error); } })()`,
    );
    assert.equal(thrown.code, 'key_secret');
    assert.match(thrown.message, /Revoke it now/);
    const published = await open(
      t,
      withLoader(vault, `<strongroom-card id="card"></strongroom-card>${recording(secret)}`),
    );
    assert.match(await published.page.textContent('#card [role=alert]'), /could not be loaded/);
    assert.ok(published.complaints.some((text) => text.includes('Revoke it now')));
    assert.ok(!published.complaints.join().includes(secret), 'the key is not in the console');
  });

  test('a value is shown to its owner inside the frame, and the page never has the key that reveals it', async (t) => {
    const server = await vault.application();
    const token = await vault.send('POST', '/tokens', {
      key: server,
      body: {
        type: 'card',
        data: { number: cardNumber, expiration_month: 12, expiration_year: 2030 },
      },
    });
    const html = `<strongroom-reveal id="text"></strongroom-reveal>
<strongroom-reveal id="face" format="card"></strongroom-reveal>${recording(key)}`;
    const { page } = await open(t, withLoader(vault, html));
    await ready(page, 2);
    const early = await page.evaluate(
      `byId('text').show({ token: '${token.body.id}' }).catch(failed)`,
    );
    assert.equal(early.code, 'no_session');
    const session = await page.evaluate('fields.sessions.create()');
    assert.deepEqual(Object.keys(session), ['nonce', 'expires_at']);
    const rules = [{ ...revealEverything, permissions: ['token:read'] }];
    const granted = { nonce: session.nonce, rules };
    assert.equal(
      (await vault.send('POST', '/sessions/authorize', { key: server, body: granted })).status,
      200,
    );
    await page.evaluate(`byId('text').show({ token: '${token.body.id}', path: 'data.number' })`);
    await page.evaluate(`byId('face').show({ token: '${token.body.id}' })`);
    const shown = (id: string) =>
      page.frameLocator(`#${id} iframe`).locator('output').textContent();
    assert.deepEqual(
      [await shown('text'), await shown('face')],
      [cardNumber, '4242 4242 4242 4242'],
    );
    assertNoDigits(
      await page.evaluate('JSON.stringify([events, document.documentElement.outerHTML])'),
    );
    await page.evaluate("byId('text').hide()");
    assert.equal(await page.frameLocator('#text iframe').locator('output').count(), 0);
  });

  test('a security code that is still stored is shown only when the page names it', async (t) => {
    const server = await vault.application();
    const data = { number: cardNumber, expiration_month: 12, expiration_year: 2030, cvc: '987' };
    const token = await vault.send('POST', '/tokens', {
      key: server,
      body: { type: 'card', data },
    });
    const html = `<strongroom-reveal id="text"></strongroom-reveal>
<strongroom-reveal id="face" format="card"></strongroom-reveal>${recording(key)}`;
    const { page } = await open(t, withLoader(vault, html));
    await ready(page, 2);
    const { nonce } = await page.evaluate('fields.sessions.create()');
    const rules = [{ ...revealEverything, permissions: ['token:read'] }];
    await vault.send('POST', '/sessions/authorize', { key: server, body: { nonce, rules } });
    const shown = async (id: string, path = '') => {
      await page.evaluate(`byId('${id}').show({ token: '${token.body.id}'${path} })`);
      return (await page.frameLocator(`#${id} iframe`).locator('body').textContent()) ?? '';
    };
    for (const id of ['text', 'face']) assert.match(await shown(id), /4242.*30/);
    for (const id of ['text', 'face']) assert.doesNotMatch(await shown(id), /987/);
    assert.match(await shown('text', ", path: 'data.cvc'"), /987/);
  });

  test('a service worker of the page is asked for no frame and no call of one', async (t) => {
    const worker = shop.page(
      `const asked = [];
      addEventListener('install', () => skipWaiting());
      addEventListener('activate', (event) => event.waitUntil(clients.claim()));
      addEventListener('fetch', ({ request }) => asked.push(request.url));
      addEventListener('message', ({ ports: [port] }) => port.postMessage(asked));`,
      { 'content-type': 'text/javascript' },
    );
    const html = withLoader(vault, allElements + recording(key));
    const { page } = await open(t, html);
    await page.evaluate(`navigator.serviceWorker.register('${new URL(worker).pathname}')`);
    await page.waitForFunction('navigator.serviceWorker.controller !== null');
    await page.reload();
    await typeCard(page);
    const token = await page.evaluate("fields.tokens.create({ type: 'card', data: card() })");
    assert.equal(token.data.number, 'XXXXXXXXXXXX4242');
    const asked: string[] = await page.evaluate(`new Promise((done) => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = ({ data }) => done(data);
      navigator.serviceWorker.controller.postMessage('', [port2]);
    })`);
    assert.ok(
      asked.some((url) => url.endsWith('/loader.js')),
      'it sees what the page loads',
    );
    assert.deepEqual(
      asked.filter((url) => url.startsWith(vault.url) && !url.endsWith('/loader.js')),
      [],
    );
  });

  test('a frame runs no other script, stores nothing, and calls no other host or feature', async (t) => {
    const { page, complaints } = await open(t, withLoader(vault, allElements + recording(key)));
    await typeCard(page);
    await page.evaluate("fields.tokens.create({ type: 'card', data: card() })");
    const handle = await page.locator('#number iframe').elementHandle();
    const frame = await handle.contentFrame();
    const attempts = await frame.evaluate(async (elsewhere: string) => {
      // biome-ignore lint/suspicious/noExplicitAny: types of the browser are not here
      const view = globalThis as any;
      const { document } = view;
      const tried = async (attempt: () => unknown) => {
        try {
          return String(await attempt());
        } catch (error) {
          return (error as Error).name;
        }
      };
      const inline = document.createElement('script');
      const { featurePolicy } = document;
      return {
        html: await tried(() => {
          document.body.innerHTML = '<img src=x>';
        }),
        inline: await tried(() => {
          inline.text = 'globalThis.ran = true';
        }),
        fetch: await tried(() => fetch(`${elsewhere}/leak`)),
        cookies: document.cookie,
        // Browsers that give a frame of another site no storage say so.
        stored: /^(?:0|SecurityError)$/.test(
          await tried(() => view.localStorage.length + view.sessionStorage.length),
        ),
        features: featurePolicy
          .allowedFeatures()
          .filter((name: string) =>
            /camera|microphone|geolocation|payment|usb|clipboard-read|storage-access/.test(name),
          ),
      };
    }, shop.origin);
    assert.deepEqual(attempts, {
      html: 'TypeError',
      inline: 'TypeError',
      fetch: 'TypeError',
      cookies: '',
      stored: true,
      features: [],
    });
    assert.deepEqual(await page.context().storageState(), { cookies: [], origins: [] });
    assert.ok(complaints.some((text) => text.includes('Content Security Policy')));
    assertNoDigits(complaints.join(' '));
  });

  test('a page that is not listed gets no frame, and nothing from a frame that it opens itself', async (t) => {
    const stranger = await openShop(t);
    const context = await browser.newContext();
    t.after(() => context.close());
    const page = await context.newPage();
    await page.goto(
      stranger.page(`<script>window.heard = [];
        addEventListener('message', ({ data }) => heard.push(data.strongroom));</script>
        <iframe src="${vault.url}/fields/v1/frame/${key}"></iframe>`),
    );
    await page.waitForLoadState('load');
    assert.deepEqual(await page.evaluate('heard'), [], 'frame-ancestors');
    // In a window of its own nothing stops it from being loaded, and it stays silent.
    await page.evaluate(`window.opened = window.open('${vault.url}/fields/v1/frame/${key}'); 0`);
    const popup = context.pages().at(-1);
    await popup.waitForLoadState('load');
    await page.evaluate(`(() => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = ({ data }) => heard.push(data);
      const connect = { strongroom: 'connect', version: 1, element: 'x', kind: 'controller', options: {} };
      opened.postMessage(connect, '*', [port2]);
    })()`);
    assert.equal(await popup.evaluate('globalThis.strongroomController'), undefined);
    assert.deepEqual(await page.evaluate('heard'), []);
  });

  test('messages that only look like those of a frame change nothing', async (t) => {
    const forged = `<script>
      const forge = () => {
        for (const data of [{ strongroom: 'hello', versions: [99] }, { strongroom: 'hello', versions: [1] },
          { type: 'ready', state: {} }, { type: 'reply', call: 1, result: 'forged' }, null, 7]) {
          window.postMessage(data, '*');
          window.dispatchEvent(new MessageEvent('message', { data, origin: '${vault.url}', source: window }));
        }
      };
      forge();
    </script>`;
    const html = `${forged}${allElements}${recording(key)}<script>forge();</script>`;
    const { page } = await open(t, withLoader(vault, html));
    await typeCard(page);
    const token = await page.evaluate("fields.tokens.create({ type: 'card', data: card() })");
    assert.equal(token.data.number, 'XXXXXXXXXXXX4242');
  });

  test('a loader that is not what the page states does not run', async (t) => {
    const { body } = await vault.send('GET', '/fields/v1/digests.json');
    const { integrity } = body.files.find(({ name }: { name: string }) => /loader/.test(name));
    const stated = (digest: string) =>
      withLoader(vault, '').replace('crossorigin', `integrity="${digest}" crossorigin`);
    const right = await open(t, stated(integrity));
    assert.equal(await right.page.evaluate('typeof Strongroom'), 'object');
    const wrong = await open(t, stated(integrity.replace(/sha384-..../, 'sha384-AAAA')));
    assert.equal(await wrong.page.evaluate('typeof Strongroom'), 'undefined');
  });

  test('a frame that does not come is an error after 10 s, with a reason', async (t) => {
    const context = await browser.newContext();
    t.after(() => context.close());
    const page = await context.newPage();
    // As an ad blocker does it.
    await page.route(/\/fields\/v1\/frame\//, (route: { abort(): void }) => route.abort());
    await page.clock.install();
    await page.goto(shop.page(withLoader(vault, allElements + recording(key))));
    await page.clock.pauseAt(await page.evaluate('Date.now() + 1_000'));
    await page.clock.runFor(8_000);
    assert.equal(await page.evaluate("events.some(({ type }) => type === 'error')"), false);
    await page.clock.runFor(3_000);
    await until(
      () => page.evaluate("events.find(({ type }) => type === 'error')?.detail.code"),
      'frame_blocked',
    );
    assert.match(await page.textContent('#number [role=alert]'), /reload the page/);
  });

  test('fields that come and go leave nothing in the page', async (t) => {
    const { page } = await open(t, withLoader(vault, `<div id="place"></div>${recording(key)}`));
    await page.evaluate(`(async () => {
      for (let at = 0; at < 10; at += 1) {
        const card = fields.create('card');
        await new Promise((done) => { card.addEventListener('ready', done); card.mount('#place'); });
        card.unmount();
      }
    })()`);
    // The one that calls the vault.
    assert.equal(await page.evaluate("document.querySelectorAll('iframe').length"), 1);
    assert.equal(await page.evaluate("byId('place').innerHTML"), '');
    await until(async () => page.frames().length, 2);
  });

  test('the customer chooses among the networks of a card, and the page learns which', async (t) => {
    const html = `<strongroom-card-number id="number"></strongroom-card-number>${recording(key)}`;
    const { page } = await open(t, withLoader(vault, html));
    await ready(page, 1);
    await inputIn(page, 'number').fill('4000002500001001');
    const choice = page.frameLocator('#number iframe').getByRole('radio');
    await choice.nth(1).waitFor();
    const networks = () => page.evaluate("byId('number').state.brands");
    await until(networks, ['visa', 'mastercard']);
    assert.equal(await page.evaluate("byId('number').state.selectedBrand"), 'visa');
    await page.frameLocator('#number iframe').locator('.badge.mastercard').click();
    await until(() => page.evaluate("byId('number').state.selectedBrand"), 'mastercard');
    const group = page.frameLocator('#number iframe').getByRole('group');
    assert.equal(await group.locator('legend').textContent(), 'Network of the card');
  });

  test('the button in the frame copies the value, and the page does not notice', async (t) => {
    const server = await vault.application();
    const body = { type: 'token', data: 'a value of its owner' };
    const token = await vault.send('POST', '/tokens', { key: server, body });
    const permissions = ['clipboard-read', 'clipboard-write'];
    const html = `<strongroom-reveal id="text"></strongroom-reveal>${recording(key)}`;
    const { page } = await open(t, withLoader(vault, html), { permissions });
    await ready(page, 1);
    const session = await page.evaluate('fields.sessions.create()');
    const rules = [{ ...revealEverything, permissions: ['token:read'] }];
    const granted = { nonce: session.nonce, rules };
    await vault.send('POST', '/sessions/authorize', { key: server, body: granted });
    await page.evaluate(`byId('text').show({ token: '${token.body.id}' })`);
    await page.evaluate(`for (const type of ['copy', 'cut', 'clipboardchange', 'selectionchange'])
      document.addEventListener(type, () => events.push({ type }));
      addEventListener('message', ({ data }) => events.push({ type: 'message', data }));`);
    const before = await page.evaluate('events.length');
    await page.frameLocator('#text iframe').getByRole('button', { name: 'Copy' }).click();
    await page.frameLocator('#text iframe').getByRole('button', { name: 'Copied' }).waitFor();
    const heard = (await page.evaluate('events')).slice(before);
    assert.deepEqual(
      heard.filter(({ type }: { type: string }) => !['focus', 'blur'].includes(type)),
      [],
    );
    assert.ok(!(await page.content()).includes(body.data));
    await page.bringToFront();
    await page.locator('h1').click();
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), body.data);
  });

  test('no field has an accessibility violation, light or dark, wrong or right, in any direction', async (t) => {
    const source = readFileSync(
      createRequire(import.meta.url).resolve('axe-core/axe.min.js'),
      'utf8',
    );
    const html = `<strongroom-card id="card" locale="ar"></strongroom-card>
<strongroom-bank-account id="bank"></strongroom-bank-account>
<strongroom-text id="text" hide-label label="Name"></strongroom-text>
<strongroom-file id="file"></strongroom-file>${recording(key)}`;
    for (const look of [
      { colorScheme: 'light' },
      { colorScheme: 'dark' },
      { colorScheme: 'dark', forcedColors: 'active' },
    ] as const) {
      const style = '<style>:root { color-scheme: light dark }</style>';
      const { page } = await open(t, withLoader(vault, style + html), {
        ...look,
        // As wide as a window of 640 pixels at 200 %.
        viewport: { width: 320, height: 700 },
      });
      await ready(page, 4);
      await inputIn(page, 'card').fill('4242424242424241');
      for (const frame of page.frames()) {
        await frame.evaluate(source);
        // The page shows through a frame; its canvas stands for it.
        await frame.evaluate("document.documentElement.style.background = 'Canvas'");
        const { violations } = await frame.evaluate(
          "axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa'], iframes: false })",
        );
        assert.deepEqual(
          violations.map(({ id }: { id: string }) => id),
          [],
          `${JSON.stringify(look)} ${frame.url().slice(0, 60)}`,
        );
      }
      assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 320);
    }
  });
});

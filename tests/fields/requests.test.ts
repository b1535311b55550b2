/** Each request with fields puts what was typed where the page says, in the vault alone, and the page gets the rest. */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { withoutBrowser } from '../support/browser.ts';
import {
  allElements,
  assertNoDigits,
  type CardFields,
  cardNumber,
  createCard,
  inputIn,
  type Page,
  ready,
  recording,
  startCardFields,
  typeCard,
} from '../support/card-fields.ts';
import { type Called, startCalled } from '../support/proxy-calls.ts';
import { publicApplication, withLoader } from '../support/shop.ts';
import type { Lender } from '../support/temporary.ts';
import { managementKey } from '../support/vault.ts';

suite('Requests with fields', { skip: withoutBrowser }, () => {
  const given: (() => void | Promise<void>)[] = [];
  const lender: Lender = { after: (give) => void given.push(give) };
  let world: CardFields;
  let called: Called;
  let reader: string;
  let intending: string;

  before(async () => {
    called = await startCalled(lender);
    world = await startCardFields(lender, called.environment);
    reader = await world.vault.application();
    const permissions = ['token-intent:create'];
    intending = await publicApplication(world.vault, [world.shop.origin], permissions);
  });
  after(async () => {
    for (const give of given.reverse()) await give();
  });

  const stored = async (id: string) =>
    (await world.vault.send('GET', `/tokens/${id}`, { key: reader })).body.data;
  const attempt = (page: Page, code: string) => page.evaluate(`${code}.catch(failed)`);

  test('tokens.update replaces what it names, and leaves the rest', async (t) => {
    const body = {
      type: 'card',
      data: { number: '5555555555554444', expiration_month: 1, expiration_year: 2031 },
      metadata: { order: '7' },
    };
    const before_ = await world.vault.send('POST', '/tokens', { key: reader, body });
    const { page } = await world.open(
      t,
      withLoader(world.vault, allElements + recording(world.key)),
    );
    await typeCard(page);
    const { month, year } = { month: "byId('expiry').month", year: "byId('expiry').year" };
    const data = `{ expiration_month: ${month}, expiration_year: ${year} }`;
    const updated = await attempt(
      page,
      `fields.tokens.update('${before_.body.id}', { data: ${data} })`,
    );
    assert.equal(updated.id, before_.body.id, JSON.stringify(updated));
    assert.deepEqual(await stored(before_.body.id), {
      number: '5555555555554444',
      expiration_month: 12,
      expiration_year: 2030,
    });
    const renumbered = await attempt(
      page,
      `fields.tokens.update('${before_.body.id}', { data: { number: byId('number') } })`,
    );
    assert.equal(renumbered.id, before_.body.id, JSON.stringify(renumbered));
    assert.equal((await stored(before_.body.id)).number, cardNumber);
    assertNoDigits(JSON.stringify([updated, renumbered]));
  });

  test('tokenIntents.create gives an intent, which a server makes a token', async (t) => {
    const { page } = await world.open(
      t,
      withLoader(world.vault, allElements + recording(intending)),
    );
    await typeCard(page);
    const intent = await attempt(page, createCard.replace('tokens.', 'tokenIntents.'));
    assert.equal(intent.type, 'card', JSON.stringify(intent));
    assertNoDigits(JSON.stringify(intent));
    const converted = await world.vault.send('POST', '/tokens', {
      key: reader,
      body: { token_intent_id: intent.id },
    });
    assert.equal(converted.status, 201, converted.text);
    assert.equal((await stored(converted.body.id)).cvc ?? '987', '987');
    assert.equal((await stored(converted.body.id)).number, cardNumber);
  });

  test('a page that permits nothing but scripts and frames of the vault has all of this', async (t) => {
    const { vault, key, shop } = world;
    const policy = [
      "default-src 'none'",
      `script-src ${vault.url}/fields/ 'unsafe-inline' 'unsafe-eval'`,
      `frame-src ${vault.url}/fields/v1/frame/${key}`,
      "require-trusted-types-for 'script'; trusted-types 'none'",
    ].join('; ');
    const headers = { 'content-security-policy': policy };
    const html = withLoader(vault, allElements + recording(key));
    const { page, complaints } = await world.open(t, shop.page(html, headers));
    await typeCard(page);
    const token = await attempt(page, createCard);
    assert.equal(token.data?.number, 'XXXXXXXXXXXX4242', JSON.stringify(token));
    assert.deepEqual(
      complaints.filter((text) => /Fields|trusted|frame/i.test(text)),
      [],
    );
  });

  test('a retry with the same idempotency key has one effect', async (t) => {
    const { page } = await world.open(
      t,
      withLoader(world.vault, allElements + recording(world.key)),
    );
    await typeCard(page);
    const options = `{ idempotencyKey: '${crypto.randomUUID()}' }`;
    const create = createCard.replace(/\)$/, `, ${options})`);
    const [first, second] = [await attempt(page, create), await attempt(page, create)];
    assert.match(first.id, /./, JSON.stringify(first));
    assert.equal(first.id, second.id);
  });

  test('values stand at any depth of a body, in lists as well', async (t) => {
    const { page } = await world.open(
      t,
      withLoader(world.vault, allElements + recording(world.key)),
    );
    await typeCard(page);
    const tokenized = await attempt(
      page,
      "fields.tokenize({ a: [{ deep: byId('number') }, 'plain'], b: byId('code') })",
    );
    assert.equal(await stored(tokenized.a[0].deep), cardNumber, JSON.stringify(tokenized));
    assert.equal(await stored(tokenized.b), '987');
  });

  test('an empty field that is not required is left out, and a required one is not', async (t) => {
    const html = `${allElements.replace('id="code"', 'id="code" required="false"')}
      <strongroom-text id="name" label="Name" required="false"></strongroom-text>${recording(world.key)}`;
    const { page } = await world.open(t, withLoader(world.vault, html));
    await ready(page, 4);
    await inputIn(page, 'number').fill(cardNumber);
    const refused = await attempt(page, createCard);
    assert.equal(refused.code, 'incomplete');
    await inputIn(page, 'expiry').fill('1230');
    const token = await attempt(page, createCard);
    const data = { number: cardNumber, expiration_month: 12, expiration_year: 2030 };
    assert.deepEqual(await stored(token.id), data, JSON.stringify(token));
    const named = await attempt(
      page,
      "fields.tokens.create({ type: 'token', data: { name: byId('name'), kept: 'x' } })",
    );
    assert.deepEqual(await stored(named.id), { kept: 'x' }, JSON.stringify(named));
    assert.equal(await page.evaluate("byId('name').state.complete"), false);
  });

  test('a proxy gets a file, and a provider that repeats it does not give it to the page', async (t) => {
    called.destination.behave(async ({ response, received }) => {
      const text = (await received).body.toString();
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ taken: true, echo: JSON.parse(text).file }));
    });
    const create = { name: 'provider', destination_url: called.url, require_auth: true };
    const proxy = (await world.vault.send('POST', '/proxies', { key: managementKey, body: create }))
      .body;
    const html = `<strongroom-file id="file"></strongroom-file>${recording(world.key)}`;
    const { page } = await world.open(t, withLoader(world.vault, html));
    await ready(page, 1);
    const buffer = Buffer.from('%PDF-1.7 of a person');
    await inputIn(page, 'file').setInputFiles({
      name: 'a.pdf',
      mimeType: 'application/pdf',
      buffer,
    });
    const { nonce } = await page.evaluate('fields.sessions.create()');
    const server = await world.vault.application({
      name: 's',
      type: 'private',
      permissions: ['proxy:invoke'],
    });
    const granted = { nonce, permissions: ['proxy:invoke'] };
    await world.vault.send('POST', '/sessions/authorize', { key: server, body: granted });
    const sent = await attempt(
      page,
      `fields.proxy({ proxy: '${proxy.key}', path: 'files', method: 'PUT', headers: { 'X-Shop': '1' },
        body: { file: byId('file') } })`,
    );
    assert.deepEqual(sent, { status: 200, body: { taken: true, echo: null } });
    const request = called.destination.requests.at(-1);
    assert.equal(request?.method, 'PUT');
    assert.equal(JSON.parse(request?.body.toString() ?? '').file, buffer.toString('base64'));
  });
});

/** What goes wrong with card fields is said to the developer of the page, and to the customer in their language. */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { withoutBrowser } from '../support/browser.ts';
import {
  allElements,
  assertNoDigits,
  type CardFields,
  createCard,
  type OpenOptions,
  type Page,
  recording,
  startCardFields,
  typeCard,
} from '../support/card-fields.ts';
import { engineOf } from '../support/engines.ts';
import { publicApplication, withLoader } from '../support/shop.ts';
import type { Lender } from '../support/temporary.ts';
import { startVault, type TestVault } from '../support/vault.ts';

/** Records the event of `fields` as well. */
const heard = `<script>window.told = [];
fields.addEventListener('error', (event) => { event.preventDefault(); told.push(failed(event.detail)); });</script>`;

suite('What is refused', { skip: withoutBrowser }, () => {
  const given: (() => void | Promise<void>)[] = [];
  const lender: Lender = { after: (give) => void given.push(give) };
  let world: CardFields;

  before(async () => {
    world = await startCardFields(lender);
  });
  after(async () => {
    for (const give of given.reverse()) await give();
  });

  const card = '<strongroom-card id="card"></strongroom-card>';
  const french = (html: string) => html.replace('lang="en"', 'lang="fr"');
  /** Of a page whose frame may be late by no time at all, in the language of France. */
  const impatient = (vault: TestVault, key: string) =>
    french(withLoader(vault, card + recording(key, ', timeoutMs: 1') + heard));

  async function failureOf(page: Page): Promise<{ code: string; message: string }> {
    await page.waitForFunction("events.some(({ type }) => type === 'error') && told.length > 0");
    const { detail } = await page.evaluate("events.find(({ type }) => type === 'error')");
    const [told] = await page.evaluate('told');
    assert.deepEqual([told.code, told.message], [detail.code, detail.message]);
    const sentence = await page.textContent('#card [role=alert]');
    assert.match(sentence, /^Ce formulaire n’a pas pu être chargé/);
    assert.deepEqual([detail.customerMessage, told.customerMessage], [sentence, sentence]);
    return detail;
  }

  type Row = readonly [
    name: string,
    code: string,
    message: RegExp,
    key: () => Promise<string> | string,
    options?: OpenOptions,
  ];
  const rows: readonly Row[] = [
    [
      'a key that the vault does not know',
      'key_invalid',
      /does not know this key/,
      () => `${world.key.slice(0, -6)}000000`,
    ],
    [
      'a page whose origin is not listed',
      'origin_not_listed',
      /does not list http:\/\/localhost:\d+ in origins/,
      () => publicApplication(world.vault, ['https://shop.example.com']),
    ],
    [
      'an application without origins',
      'origin_not_listed',
      /lists no origins/,
      () => publicApplication(world.vault, undefined),
    ],
    [
      'frames that an extension blocks',
      'frame_blocked',
      /frame-src of the page, or by an extension/,
      () => world.key,
      {
        prepare: (page: Page) =>
          page.route(/\/fields\/v1\/frame\//, (route: { abort(): void }) => route.abort()),
      },
    ],
    [
      'a browser that is offline',
      'offline',
      /The browser is offline/,
      () => world.key,
      {
        prepare: (page: Page) =>
          Promise.all([
            page.route(/\/fields\/v1\/frame\//, (route: { abort(): void }) => route.abort()),
            page.addInitScript(
              "Object.defineProperty(Navigator.prototype, 'onLine', { get: () => false })",
            ),
          ]),
      },
    ],
    [
      'a vault that is down',
      'vault_unreachable',
      /does not respond/,
      () => world.key,
      {
        prepare: (page: Page) =>
          page.route(/\/fields\/v1\/frame\/|\/applications\/key/, (route: { abort(): void }) =>
            route.abort(),
          ),
      },
    ],
    [
      'a frame of a release that the script does not know',
      'version_unsupported',
      /Load its loader, or update the package/,
      () => world.key,
      {
        prepare: (page: Page) =>
          page.route(/\/fields\/v1\/frame\//, (route: { fulfill(reply: object): void }) =>
            route.fulfill({
              contentType: 'text/html',
              body: "<script>parent.postMessage({ strongroom: 'hello', versions: [99] }, '*')</script>",
            }),
          ),
      },
    ],
  ];
  for (const [name, code, message, key, options] of rows) {
    test(`${name}: ${code}`, async (t) => {
      const html = impatient(world.vault, await key());
      // What says hello decides before the time is over.
      const patient = code === 'version_unsupported' ? html.replace(', timeoutMs: 1', '') : html;
      const { page, complaints } = await world.open(t, patient, options);
      const failure = await failureOf(page);
      assert.equal(failure.code, code);
      assert.match(failure.message, message);
      assert.ok(!complaints.some((text) => text.includes('FieldsError')), 'it was heard');
    });
  }

  test('while the loader does not come, an element shows what the page wrote into it', async (t) => {
    const html = withLoader(world.vault, card.replace('><', '>Reload the page.<'));
    const failing = html.replace('crossorigin="anonymous"', 'onerror="window.failed = true"');
    let isBlocked = true;
    const { page } = await world.open(t, failing, {
      prepare: (opened: Page) =>
        opened.route(/loader\.js$/, (route: { abort(): void; continue(): void }) =>
          isBlocked ? route.abort() : route.continue(),
        ),
    });
    assert.equal(await page.evaluate('window.failed'), true);
    assert.equal(await page.locator('#card').innerText(), 'Reload the page.');
    isBlocked = false;
    await page.reload();
    await page.evaluate(`void Strongroom.fields({ key: '${world.key}' })`);
    await page.frameLocator('#card iframe').locator('input').first().waitFor();
    assert.equal(await page.locator('#card').innerText(), '');
  });

  test('a page that does not listen has the reason in its console', async (t) => {
    const unlisted = await publicApplication(world.vault, ['https://shop.example.com']);
    const html = withLoader(world.vault, card + recording(unlisted, ', timeoutMs: 1'));
    const { page, complaints } = await world.open(t, html);
    await page.waitForFunction("events.some(({ type }) => type === 'error')");
    assert.ok(
      complaints.some((text) => /does not list http/.test(text)),
      complaints.join('\n'),
    );
  });

  test('a private key, and what is no key, are refused before anything is sent', async (t) => {
    const secret = await world.vault.application();
    const asked: string[] = [];
    const { page } = await world.open(t, french(withLoader(world.vault, card)), {
      prepare: async (opened: Page) =>
        opened.on('request', (request: { url(): string; headers(): object }) =>
          asked.push(request.url() + JSON.stringify(request.headers())),
        ),
    });
    const attempt = (key: string) =>
      page.evaluate(`(() => {
        const heard = [];
        document.getElementById('card').addEventListener('error', ({ detail }) => heard.push(detail));
        try { Strongroom.fields({ key: '${key}' }); }
        catch ({ code, message, customerMessage }) { return { code, message, customerMessage, heard }; }
      })()`);
    for (const [key, code, message] of [
      [secret, 'key_secret', /Revoke it now/],
      [secret.replace('_pvt_', '_mgt_'), 'key_secret', /Revoke it now/],
      ['key_test_pub_short', 'key_invalid', /not the key of a public application/],
    ] as const) {
      const refused = await attempt(key);
      assert.equal(refused.code, code);
      assert.match(refused.message, message);
      assert.match(refused.customerMessage, /^Ce formulaire n’a pas pu être chargé/);
      const [{ customerMessage, ...told }] = refused.heard;
      assert.deepEqual(told, { code, message: refused.message });
      assert.equal(customerMessage, refused.customerMessage);
    }
    assert.ok(!asked.join().includes(secret), 'no request has the key');
  });

  test('a request that fails says why, and has a sentence in the language of the fields', async (t) => {
    const own = await startVault(t, engineOf('sqlite'));
    const key = await publicApplication(own, [world.shop.origin]);
    const limited = await publicApplication(own, [world.shop.origin], ['token:update']);
    const html = french(withLoader(own, allElements + recording(key) + heard));
    const { page } = await world.open(t, html);
    const attempt = (code: string) => page.evaluate(`${code}.then(() => 'done', failed)`);
    const expected: unknown[] = [];
    const seen: { code: string; customerMessage: string }[] = [];
    const expect = async (request: string, code: string, message: RegExp, sentence: string) => {
      const failure = await attempt(request);
      assert.deepEqual([failure.code, failure.customerMessage], [code, sentence]);
      assert.match(failure.message, message);
      expected.push([code, sentence]);
      seen.push(failure);
    };
    await expect(
      createCard,
      'incomplete',
      /A field is incomplete/,
      'Vérifiez les champs signalés.',
    );
    await typeCard(page);
    const refused =
      'L’opération a échoué. Si le problème persiste, contactez le responsable de ce site.';
    const wrong = createCard.replace("type: 'card'", "type: 'card', expires_at: 'yesterday'");
    await expect(wrong, 'validation_failed', /./, refused);
    await page.evaluate(`window.other = Strongroom.fields({ key: '${limited}' })`);
    await expect(createCard.replace('fields.', 'other.'), 'field_missing', /another key/, refused);
    await page.context().setOffline(true);
    const offline = 'Vous êtes hors ligne. Rien n’a été envoyé. Connectez-vous et réessayez.';
    await expect(createCard, 'offline', /Nothing was sent/, offline);
    await page.context().setOffline(false);
    await own.stop();
    const down = 'La connexion a échoué. Réessayez.';
    await expect(createCard, 'vault_unreachable', /same idempotency key/, down);
    // Each is an event of the fields that it was asked of.
    const told: { code: string; customerMessage: string }[] = await page.evaluate('told');
    assert.deepEqual(
      told.map(({ code, customerMessage }) => [code, customerMessage]),
      expected.filter((one) => (one as string[])[0] !== 'field_missing'),
    );
    assertNoDigits(JSON.stringify(seen));
  });

  test('a value that cannot be shown is a sentence in its place', async (t) => {
    const html = `<strongroom-reveal id="text" locale="de"></strongroom-reveal>${recording(world.key)}`;
    const { page } = await world.open(t, withLoader(world.vault, html));
    const refused = await page.evaluate("byId('text').show({ token: 'x' }).then(() => 0, failed)");
    assert.equal(refused.code, 'no_session');
    const said = page.frameLocator('#text iframe').locator('.error');
    assert.equal(await said.textContent(), 'Dies kann gerade nicht angezeigt werden.');
  });
});

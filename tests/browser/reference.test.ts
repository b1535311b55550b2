/** GET /docs in a browser: the reference shows everything, sends nothing on its own, and anyone can use it. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import {
  type Description,
  type Operation,
  operationsOf,
} from '../../packages/reference/src/document.ts';
import { tagAnchor } from '../../packages/reference/src/place.ts';
import { startBrowser, withoutBrowser } from '../support/browser.ts';
import { installed, reasonWithout } from '../support/development-packages.ts';
import { engineOf } from '../support/engines.ts';
import { startVault, type TestVault } from '../support/vault.ts';

const axe = await installed('axe-core');
const skip = reasonWithout({ 'axe-core': axe }) || withoutBrowser;

const ends: (() => unknown)[] = [];
const lender = { after: (end: () => unknown) => void ends.unshift(end) };
let vault: TestVault;
let description: Description;
let operations: readonly Operation[];
let chromium: Awaited<ReturnType<typeof startBrowser>>;

before(async () => {
  if (skip) return;
  vault = await startVault(lender, engineOf('sqlite'));
  description = (await vault.send('GET', '/openapi.json')).body;
  operations = operationsOf(description);
  chromium = await startBrowser(lender);
});

after(async () => {
  for (const end of ends) await end();
});

interface Opened {
  readonly page: Awaited<ReturnType<typeof chromium.newPage>>;
  /** What the browser wrote to its console. */
  readonly complaints: string[];
  readonly requested: string[];
}

async function open(anchor: string, options: object = {}): Promise<Opened> {
  const page = await chromium.newPage({ viewport: { width: 1440, height: 900 }, ...options });
  const complaints: string[] = [];
  const requested: string[] = [];
  page.on('console', (message: { text(): string }) => complaints.push(message.text()));
  page.on('pageerror', (error: Error) => complaints.push(error.message));
  page.on('request', (request: { url(): string }) => requested.push(request.url()));
  await page.goto(`${vault.url}/docs#${anchor}`);
  await page.waitForSelector('main h1');
  return { page, complaints, requested };
}

/** Goes to another place, and waits until the navigation shows it. */
async function show(page: Opened['page'], place: string): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(place)}`);
  await page.waitForSelector(`nav a[href="#${place}"][aria-current]`, { state: 'attached' });
}

const screens = [
  { viewport: { width: 1440, height: 900 }, colorScheme: 'light' },
  { viewport: { width: 360, height: 740 }, colorScheme: 'dark' },
] as const;

const shown = [
  'introduction',
  'authentication',
  'requests',
  'errors',
  'limits',
  'types',
  'expressions',
];
const places = [
  ...shown,
  'tag-tokens',
  'createToken',
  'listTokens',
  'postThroughProxy',
  'getHealth',
];

for (const screen of screens) {
  test(`no violation and no sideways scrolling, ${screen.colorScheme}, ${screen.viewport.width} wide`, {
    skip,
  }, async () => {
    const source = readFileSync(
      createRequire(import.meta.url).resolve('axe-core/axe.min.js'),
      'utf8',
    );
    const { page, complaints } = await open('introduction', screen);
    await page.evaluate(source);
    for (const place of places) {
      await show(page, place);
      await page.evaluate(
        'for (const one of document.querySelectorAll("main details")) one.open = true',
      );
      assert.equal(
        await page.evaluate('document.documentElement.scrollWidth'),
        screen.viewport.width,
        place,
      );
      const { violations } = await page.evaluate("axe.run({ resultTypes: ['violations'] })");
      assert.deepEqual(
        violations.map(
          ({ id, nodes }: { id: string; nodes: { html: string }[] }) => `${id} ${nodes[0]?.html}`,
        ),
        [],
        place,
      );
    }
    assert.deepEqual(complaints, []);
    await page.close();
  });
}

test('every operation has a page, with its fields, its errors and an example in five languages', {
  skip,
}, async () => {
  const { page, complaints } = await open('introduction');
  for (const { operationId, summary, path } of operations) {
    await show(page, operationId);
    assert.ok((await page.textContent('main h1')).startsWith(summary));
    assert.equal(await page.textContent('main .path code'), path);
  }
  await page.evaluate('location.hash = "createToken"');
  await page.waitForSelector('text=Create a token');
  const text = await page.evaluate('document.querySelector("main").textContent');
  for (const name of [
    'expiration_month',
    'deduplicate_token',
    'last4',
    'validation_failed',
    'What to do',
  ]) {
    assert.ok(text.includes(name), name);
  }
  for (const [language = '', part = ''] of [
    ['curl', 'curl -X POST'],
    ['typescript', 'vault.tokens.create({'],
    ['python', 'vault.tokens.create('],
    ['go', 'http.NewRequest("POST"'],
    ['java', 'HttpRequest.newBuilder'],
  ]) {
    await page.check(`input[value=${language}]`, { force: true });
    const sample = await page.textContent('.samples pre');
    assert.ok(sample.includes(part), language);
  }
  assert.deepEqual(complaints, []);
  await page.close();
});

test('every error, permission, quota, setting, type and filter has a place of its own', {
  skip,
}, async () => {
  const facts = description['x-reference'];
  const { page } = await open('introduction');
  const anchors = [
    ...Object.keys(facts.problems).map((code) => `problem-${code}`),
    ...facts.permissions.map(({ name }) => `permission-${name}`),
    ...facts.quotas.map(({ name }) => `quota-${name}`),
    ...facts.settings.map(({ name }) => `setting-${name}`),
    ...facts.tokenTypes.map(({ name }) => `type-${name}`),
    ...facts.filters.map(({ name }) => `filter-${name}`),
  ];
  for (const anchor of anchors) {
    await page.evaluate(`location.hash = ${JSON.stringify(anchor)}`);
    await page.waitForSelector(`#${anchor.replaceAll(':', '\\:')}`);
  }
  await page.close();
});

test('every link of the reference leads somewhere', { skip }, async () => {
  const { page } = await open('introduction');
  const targets = new Set<string>();
  const overviews = description.tags.map(({ name }) => tagAnchor(name));
  for (const place of [...places, ...overviews]) {
    await show(page, place);
    const links: string[] = await page.evaluate(
      '[...document.querySelectorAll("a")].map((one) => one.getAttribute("href"))',
    );
    for (const link of links) targets.add(link);
  }
  for (const target of targets) {
    if (!target.startsWith('#')) {
      assert.equal((await vault.send('GET', target)).status, 200, target);
      continue;
    }
    await page.evaluate(`location.hash = ${JSON.stringify(target)}`);
    await page.waitForSelector(`nav a[href="${target}"][aria-current], [id="${target.slice(1)}"]`, {
      state: 'attached',
    });
  }
  await page.close();
});

test('the search finds operations by name, path and attribute, and the keyboard is enough', {
  skip,
}, async () => {
  const { page } = await open('introduction');
  for (const [query, anchor] of [
    ['delete a token', 'deleteToken'],
    ['/sessions/authorize', 'authorizeSession'],
    ['xylophone', undefined],
    ['cvc_retention', 'quota-cvc_retention'],
  ] as const) {
    await page.keyboard.press('/');
    await page.keyboard.type(query);
    if (anchor === undefined) {
      await page.waitForSelector('[role=status]');
      await page.keyboard.press('Escape');
      await page.waitForSelector('dialog', { state: 'detached' });
      continue;
    }
    await page.waitForSelector('[role=option]');
    await page.keyboard.press('Enter');
    await page.waitForSelector('dialog', { state: 'detached' });
    assert.equal(await page.evaluate('location.hash'), `#${anchor}`);
  }
  await page.close();
});

test('a key of the reader is in the examples, sends a request, and is stored nowhere', {
  skip,
}, async () => {
  const key = await vault.application();
  const { page, requested } = await open('createToken');
  await page.click('.own summary');
  await page.fill('.own .secret', key);
  assert.ok((await page.textContent('.samples pre')).includes(key));
  await page.click('.try-toggle');
  await page.fill('.try textarea', '{"type": "token", "id": "from-the-reference", "data": "x"}');
  await page.click('text=Send request');
  await page.waitForSelector('.code-title.good');
  assert.equal((await vault.send('GET', '/tokens/from-the-reference', { key })).body.data, 'x');
  await page.evaluate('location.hash = "getToken"');
  await page.waitForSelector('text=Read a token');
  assert.ok((await page.textContent('.samples pre')).includes(key), 'on the next page as well');
  assert.ok(requested.every((url) => url.startsWith(vault.url) && !url.includes(key)));
  const stored = await page.evaluate(
    'JSON.stringify([localStorage, sessionStorage, document.cookie, location.href])',
  );
  assert.ok(!stored.includes(key));
  await page.reload();
  await page.waitForSelector('main h1');
  assert.ok(!(await page.content()).includes(key));
  await page.close();
});

test('an id of the reader replaces the example that stands for it, on every page', {
  skip,
}, async () => {
  const { page } = await open('getToken');
  await page.click('.own summary');
  await page.fill('.own .input:nth-of-type(2) input', 'my-own-id');
  assert.ok((await page.textContent('.samples pre')).includes('/tokens/my-own-id'));
  await page.evaluate('location.hash = "updateToken"');
  await page.waitForSelector('text=Update a token');
  assert.ok((await page.textContent('.samples pre')).includes('/tokens/my-own-id'));
  await page.close();
});

test('the example can be copied', { skip }, async () => {
  const context = await chromium.newContext();
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const page = await context.newPage();
  await page.goto(`${vault.url}/docs#getToken`);
  await page.click('.samples .copy');
  await page.waitForSelector('text=Copied');
  await context.close();
});

test('on a small screen the menu stays in reach, and closes when a page is chosen', {
  skip,
}, async () => {
  const { page } = await open('createToken', { viewport: { width: 360, height: 740 } });
  await page.evaluate('scrollTo(0, 3000)');
  assert.equal(await page.isVisible('nav'), false);
  await page.click('text=Menu');
  await page.click('nav >> text=Delete a token');
  await page.waitForSelector('h1 >> text=Delete a token');
  assert.equal(await page.isVisible('nav'), false);
  await page.close();
});

test('the first paint needs only the page and its style sheet, not the description', {
  skip,
}, async () => {
  const page = await chromium.newPage();
  let release: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route('**/openapi.json', async (route: { continue(): Promise<void> }) => {
    await held;
    await route.continue();
  });
  await page.goto(`${vault.url}/docs`);
  await page.waitForSelector('.brand');
  release();
  await page.waitForSelector('main h1');
  await page.close();
});

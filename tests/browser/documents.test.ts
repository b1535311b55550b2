/** The documents as a site: complete, without anything from elsewhere, and found by its search. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join, posix } from 'node:path';
import { after, before, test } from 'node:test';
import { buildSite } from '../../scripts/docs-site.ts';
import { startBrowser, withoutBrowser } from '../support/browser.ts';
import { installed, reasonWithout } from '../support/development-packages.ts';
import { committedPaths } from '../support/source.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const axe = await installed('axe-core');
const skip = reasonWithout({ 'axe-core': axe }) || withoutBrowser;

const ends: (() => unknown)[] = [];
const lender = { after: (end: () => unknown) => void ends.unshift(end) };
let directory: string;
let pages: readonly string[];
let url: string;

const mediaTypes: Readonly<Record<string, string>> = {
  css: 'text/css',
  html: 'text/html',
  js: 'text/javascript',
  json: 'application/json',
  svg: 'image/svg+xml',
};

before(async () => {
  directory = temporaryDirectory(lender);
  pages = await buildSite(directory);
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://site');
    const file = join(directory, pathname);
    if (!existsSync(file) || statSync(file).isDirectory()) {
      response.writeHead(404).end();
      return;
    }
    const type = mediaTypes[posix.extname(pathname).slice(1)] ?? 'text/plain';
    response.writeHead(200, { 'content-type': type }).end(readFileSync(file));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  lender.after(() => {
    server.close();
    server.closeAllConnections();
  });
});

after(async () => {
  for (const end of ends) await end();
});

test('each document has a page, and each link of a page leads to a file and a heading', () => {
  const documents = committedPaths().filter((path) => /^(?:docs\/.*|[A-Z]+)\.md$/.test(path));
  // And one of all decisions.
  assert.equal(pages.length, documents.length + 1);
  const texts = new Map(pages.map((path) => [path, readFileSync(join(directory, path), 'utf8')]));
  const dead: string[] = [];
  for (const [path, text] of texts) {
    for (const [, target = ''] of text.matchAll(/ (?:href|src)="([^"]*)"/g)) {
      if (/^https?:/.test(target)) continue;
      const [file = '', anchor] = target.split('#');
      const place = file === '' ? path : posix.join(posix.dirname(path), file);
      const isThere = existsSync(join(directory, place));
      const hasAnchor = anchor === undefined || texts.get(place)?.includes(`id="${anchor}"`);
      if (!isThere || !hasAnchor) dead.push(`${path}: ${target}`);
    }
  }
  assert.deepEqual(dead, []);
});

const screens = [
  { viewport: { width: 1440, height: 900 }, colorScheme: 'light' },
  { viewport: { width: 360, height: 740 }, colorScheme: 'dark' },
] as const;

for (const screen of screens) {
  test(`pages load nothing from elsewhere and have no violation, ${screen.colorScheme}`, {
    skip,
  }, async (t) => {
    const source = readFileSync(
      createRequire(import.meta.url).resolve('axe-core/axe.min.js'),
      'utf8',
    );
    const browser = await startBrowser(t);
    // The page itself permits no script but its own.
    const context = await browser.newContext({ ...screen, bypassCSP: true });
    const page = await context.newPage();
    const requested: string[] = [];
    page.on('request', (request: { url(): string }) => requested.push(request.url()));
    // The client's has tables without heads, and with empty ones.
    for (const path of ['index.html', 'client.html', 'concepts.html', 'adr/index.html']) {
      await page.goto(`${url}/${path}`);
      await page.evaluate(source);
      const { violations } = await page.evaluate("axe.run({ resultTypes: ['violations'] })");
      assert.deepEqual(
        violations.map(
          ({ id, nodes }: { id: string; nodes: { html: string }[] }) => `${id} ${nodes[0]?.html}`,
        ),
        [],
        path,
      );
      assert.equal(
        await page.evaluate('document.documentElement.scrollWidth'),
        screen.viewport.width,
        path,
      );
    }
    assert.ok(requested.length > 8);
    assert.deepEqual(
      requested.filter((one) => !one.startsWith(url) && !one.startsWith('data:')),
      [],
    );
  });
}

test('the search finds a section, and the keyboard is enough', { skip }, async (t) => {
  const browser = await startBrowser(t);
  const page = await browser.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error: Error) => complaints.push(error.message));
  await page.goto(`${url}/tutorials/bank-accounts.html`);
  await page.keyboard.press('/');
  await page.waitForSelector('#search:focus');
  await page.keyboard.type('replace a key');
  await page.waitForSelector('#results a >> text=Replace a key without downtime');
  await page.keyboard.press('ArrowDown');
  await page.waitForSelector('#results a:focus');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/access.html#replace-a-key-without-downtime');
  assert.deepEqual(complaints, []);
});

test('the site names pages by their titles, and not by files that it does not have', () => {
  const named = pages.flatMap((path) => {
    const text = readFileSync(join(directory, path), 'utf8');
    return [...text.matchAll(/<a href="[^":]*\.html[^"]*">([\w/.-]+\.md)<\/a>/g)].map(
      ([, name]) => `${path}: ${name}`,
    );
  });
  assert.deepEqual(named, []);
});

test('the navigation shows where the reader is, and a finger finds how to copy', {
  skip,
}, async (t) => {
  const browser = await startBrowser(t);
  const page = await browser.newPage({ viewport: { width: 1280, height: 600 } });
  await page.goto(`${url}/crypto.html`);
  const here = page.locator('.pages [aria-current]');
  const box = await here.boundingBox();
  assert.ok(box.y > 0 && box.y < 600, JSON.stringify(box));
  const touched = await browser.newContext({ hasTouch: true, isMobile: true });
  const phone = await touched.newPage();
  await phone.goto(`${url}/operate.html`);
  await phone.waitForSelector('.block button', { state: 'attached' });
  const opacity = 'getComputedStyle(document.querySelector(".block button")).opacity';
  assert.equal(await phone.evaluate(opacity), '1');
});

/** GET /docs in a browser: accessible, readable in the dark, and not wider than a small telephone. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { startBrowser, withoutBrowser } from '../support/browser.ts';
import { installed, reasonWithout } from '../support/development-packages.ts';
import { engineOf } from '../support/engines.ts';
import { startVault } from '../support/vault.ts';

const axe = await installed('axe-core');
const skip = reasonWithout({ 'axe-core': axe }) || withoutBrowser;

const screens = [
  { width: 1280, colorScheme: 'light' },
  { width: 360, colorScheme: 'dark' },
] as const;

test('the reference has no violation, and no screen scrolls sideways', { skip }, async (t) => {
  const vault = await startVault(t, engineOf('sqlite'));
  const chromium = await startBrowser(t);
  const source = readFileSync(
    createRequire(import.meta.url).resolve('axe-core/axe.min.js'),
    'utf8',
  );
  for (const { width, colorScheme } of screens) {
    const page = await chromium.newPage({ viewport: { width, height: 800 }, colorScheme });
    const complaints: string[] = [];
    page.on('console', (message: { text(): string }) => complaints.push(message.text()));
    await page.goto(`${vault.url}/docs`);
    assert.deepEqual(complaints, []);
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), width);
    await page.evaluate(source);
    const { violations } = await page.evaluate("axe.run({ resultTypes: ['violations'] })");
    assert.deepEqual(
      violations.map(({ id }: { id: string }) => id),
      [],
      colorScheme,
    );
    await page.close();
  }
});

/** Chromium for tests, where it is installed; a test that needs it says so otherwise. */
import { existsSync } from 'node:fs';
import { installed, reasonWithout } from './development-packages.ts';
import type { Lender } from './temporary.ts';

const playwright = await installed('playwright-core');
const executablePath = '/usr/bin/chromium';
const chromium = existsSync(executablePath) || undefined;

/** The reason to skip a test in a browser, or false. */
export const withoutBrowser = reasonWithout({ 'playwright-core': playwright, chromium });

/** Without them a browser looks for hosts of its maker. */
const quiet = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** A browser of its own for the test. */
export async function startBrowser(t: Lender) {
  const browser = await playwright.chromium.launch({ executablePath, args: quiet });
  t.after(() => browser.close());
  return browser;
}

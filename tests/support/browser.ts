/** Chromium for tests, where it is installed; a test that needs it says so otherwise. */
import { existsSync } from 'node:fs';
import { installed, reasonWithout } from './development-packages.ts';
import type { Lender } from './temporary.ts';

const playwright = await installed('playwright-core');
/** The same engine without the rest of a browser starts in half of the time. */
const executablePath = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'].find(existsSync);
const chromium = executablePath && true;

/** The reason to skip a test in a browser, or false. */
export const withoutBrowser = reasonWithout({ 'playwright-core': playwright, chromium });

/** With what is around a page as well, such as autofill. */
const wholePath = ['/usr/bin/chromium', '/usr/bin/google-chrome'].find(existsSync);
export const withoutWholeBrowser = reasonWithout({
  'playwright-core': playwright,
  chromium: wholePath && true,
});

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

/** A browser of its own for the test. @param args further ones of its command line. */
export async function startBrowser(t: Lender, args: readonly string[] = []) {
  const browser = await playwright.chromium.launch({ executablePath, args: [...quiet, ...args] });
  t.after(() => browser.close());
  return browser;
}

export async function startWholeBrowser(t: Lender) {
  const args = [...quiet, '--headless=new'];
  const browser = await playwright.chromium.launch({ executablePath: wholePath, args });
  t.after(() => browser.close());
  return browser;
}

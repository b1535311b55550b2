/** The tutorial for card fields, followed to the letter: a card is collected, charged, and shown back. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { startBrowser, withoutBrowser } from '../support/browser.ts';
import { codeBlocksOf } from '../support/code-blocks.ts';
import { nextLook } from '../support/poll.ts';
import { root } from '../support/source.ts';
import { freePort, type Lender, temporaryDirectory } from '../support/temporary.ts';

const path = 'docs/tutorials/accept-cards.md';

/** Runs the lines of a shell, and gives the first line of output that has the form. */
async function started(
  t: Lender,
  { code, cwd, env }: { code: string; cwd: string; env?: Readonly<Record<string, string>> },
  form: RegExp,
): Promise<string> {
  // The shell becomes the program, so that the signal reaches it.
  const child: ChildProcess = spawn(
    'bash',
    ['-c', code.replace(/^(?=(?:node|npm) |\S+=)/m, 'exec env ')],
    {
      cwd,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
    },
  );
  t.after(() => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGTERM');
  });
  assert.ok(child.stdout);
  const lines = createInterface({ input: child.stdout });
  return new Promise((resolve, reject) => {
    lines.on('line', (line) => {
      const found = form.exec(line);
      if (found) resolve(found[0]);
    });
    child.once('exit', (status) => reject(new Error(`${code} ended with ${status}`)));
  });
}

test('each step of the tutorial does what it says', { skip: withoutBrowser }, async (t) => {
  const directory = temporaryDirectory(t);
  const shop = join(directory, 'shop');
  const text = readFileSync(join(root, path), 'utf8');
  const ports = { 8080: await freePort(), 9443: await freePort(), 3000: await freePort() };
  /** The same on this machine, where the ports of the tutorial may be taken. */
  const here = (code: string) =>
    code
      .replace(/\b(?:8080|9443|3000)\b/g, (port) => `${ports[Number(port) as keyof typeof ports]}`)
      .replace('/path/to/shop', shop);
  const commands = codeBlocksOf(path, text)
    .filter(({ language }) => language === 'sh')
    .map(({ code }) => here(code));
  const [prepare, provider, vault, setUp, server, readLog, ...others] = commands as [
    string,
    string,
    string,
    string,
    string,
    string,
    ...string[],
  ];
  assert.deepEqual(others, []);

  execFileSync('bash', ['-ec', prepare], { cwd: directory, stdio: 'ignore' });
  const files = text.matchAll(/\bSave this as `([\w.]+)`.*?\n```\w+\n(.*?)^```/gms);
  const names = [...files].map(([, name = '', code = '']) => {
    writeFileSync(join(shop, name), here(code));
    return name;
  });
  assert.deepEqual(names, ['provider.mjs', 'setup.mjs', 'index.html', 'server.mjs']);

  await started(t, { code: provider, cwd: shop }, /is ready/);
  const env = { STRONGROOM_PORT: `${ports[8080]}`, STRONGROOM_DATA_DIR: join(directory, 'data') };
  const printed = started(t, { code: vault, cwd: root, env }, /key_test_mgt_\w+/);
  const management = await printed;
  while (
    (await fetch(here('http://127.0.0.1:8080/readyz')).catch(() => undefined))?.status !== 200
  ) {
    await nextLook();
  }
  const withKey = (code: string) => code.replace('key_test_mgt_…', management);
  const said = execFileSync('bash', ['-ec', withKey(setUp)], { cwd: shop, encoding: 'utf8' });
  assert.match(said, /keys are in keys\.json/);
  const url = (await started(t, { code: server, cwd: shop }, /http:\S+/)) as string;

  const browser = await startBrowser(t);
  const page = await browser.newPage();
  await page.goto(url);
  await page.click('text=Pay');
  await page.locator('#result:text("Check the marked fields.")').waitFor();
  const input = (at: number) => page.frameLocator('#card iframe').locator('input').nth(at);
  await input(0).fill('4242 4242 4242 4242');
  await input(1).fill('1230');
  await input(2).fill('123');
  await page.click('text=Pay');
  await page.locator('#result:text("Paid with XXXXXXXXXXXX4242.")').waitFor();
  await page.click('text=Show the card');
  const shown = page.frameLocator('#shown iframe').locator('output');
  assert.equal(await shown.textContent(), '4242 4242 4242 4242');
  const frame = (await page.frameLocator('#shown iframe').locator('body').textContent()) ?? '';
  assert.ok(frame.includes('12') && !frame.includes('123'), 'the date, and no security code');
  assert.ok(!(await page.content()).replaceAll(' ', '').includes('4242424242424242'));
  const log = JSON.parse(execFileSync('bash', ['-ec', withKey(readLog)], { encoding: 'utf8' }));
  const operations = log.data.map(({ operation }: { operation: string }) => operation);
  assert.deepEqual([...new Set(operations)].sort(), ['create', 'read', 'update', 'use']);
});

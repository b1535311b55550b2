/** Copy as: each page says the same request for curl, TypeScript, and the command line, and all of them exist. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { Strongroom } from '../../packages/client/src/client.ts';
import { commands } from '../../src/cli/commands.ts';
import { select } from '../../src/cli/select.ts';
import type { Terminal } from '../../src/cli/terminal/terminal.ts';
import { withoutBrowser } from '../support/browser.ts';
import { curlRequestsIn, programWordsIn } from '../support/code-blocks.ts';
import { consoleOf, goTo } from '../support/console-pages.ts';
import { engineOf } from '../support/engines.ts';
import { root } from '../support/source.ts';
import type { TestTenant } from '../support/tenant.ts';
import { routesOf } from '../support/vault.ts';

const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
const terminal = { stdout: nowhere, stderr: nowhere } as unknown as Terminal;
/** Its methods are found by the samples; it sends nothing. */
const client: unknown = new Strongroom({ url: 'http://127.0.0.1:1', apiKey: 'none' });

const { newDesk } = consoleOf(engineOf('sqlite'));

test('each page is copied as curl, TypeScript, and a command, which exist', {
  skip: withoutBrowser,
}, async () => {
  const { tenant, page, complaints } = await newDesk();
  const routes = (await routesOf(tenant.vault)).map(
    ({ method, path }) => new RegExp(`^${method} ${path.replace(/:\w+/g, '[^/]+')}$`),
  );
  for (const path of await pathsOf(tenant)) {
    const copied = async (form: 'curl' | 'typescript' | 'cli'): Promise<string> => {
      await goTo(page, `${path}${path.includes('?') ? '&' : '?'}dialog=copy&of=${form}`);
      const name = { curl: 'curl', typescript: 'TypeScript', cli: 'Command line' }[form];
      await page.getByRole('tab', { name, selected: true }).waitFor();
      return page.getByRole('dialog').locator('pre').innerText();
    };
    const curl = (await copied('curl')).replaceAll(tenant.vault.url, '$URL');
    const [request] = curlRequestsIn(curl);
    assert.ok(request, curl);
    const asked = `${request.method} ${request.path.split('?')[0]}`;
    assert.ok(
      routes.some((route) => route.test(asked)),
      asked,
    );
    const [, method = ''] = /vault\.([\w.]+)\(/.exec(await copied('typescript')) ?? [];
    assert.equal(typeof memberOf(client, method), 'function', `${path} ${method}`);
    const [words] = programWordsIn(await copied('cli'));
    assert.ok(words, path);
    await select(commands, words, terminal);
  }
  assert.deepEqual(complaints, []);
});

test('the commands that pages without anything teach exist', async () => {
  const texts = readFileSync(join(root, 'packages/console/src/texts.ts'), 'utf8');
  const taught = [...texts.matchAll(/command: '(npx strongroom .+)',/g)].map(([, one = '']) => one);
  assert.ok(taught.length >= 4, String(taught.length));
  for (const words of taught.flatMap(programWordsIn)) await select(commands, words, terminal);
});

const memberOf = (from: unknown, path: string): unknown =>
  path
    .split('.')
    .reduce<unknown>((at, name) => (at as Record<string, unknown> | undefined)?.[name], from);

/** Each page of the navigation, and one of each kind below it. */
async function pathsOf(tenant: TestTenant): Promise<readonly string[]> {
  const key = tenant.managementKey;
  const made = async (path: string, body: object): Promise<string> => {
    const one = await tenant.send('POST', path, { key, body });
    assert.equal(one.status, 201, one.text);
    return `${path}/${one.body.id}`;
  };
  const url = 'https://psp.example.com';
  const lists = ['applications', 'proxies', 'reactors', 'webhooks', 'log', 'keys', 'people'];
  const application = await made('/applications', {
    name: 'a',
    type: 'private',
    permissions: ['token:read'],
  });
  return [
    ...['/', ...lists.map((one) => `/${one}`), '/settings', '/problems', '/account'],
    '/tokens?type=card&container=/pci/',
    `/tokens/card-${tenant.id}`,
    `/log?entity_id=two words&start_date=2026-01-31`,
    application,
    await made('/proxies', { name: 'p', destination_url: url }),
    await made('/reactors', {
      name: 'r',
      code: 'module.exports = () => ({})',
      runtime: { image: 'node22' },
    }),
    await made('/webhooks', { name: 'w', url, events: ['token.created'] }),
    await made('/people', { name: 'Ada', applications: [application.split('/').at(-1)] }),
  ];
}

/** The pages of docs/fields.md and docs/fields-reference.md work as they are printed. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { withoutBrowser } from '../support/browser.ts';
import { type Opened, startCardFields } from '../support/card-fields.ts';
import { type CodeBlock, codeBlocksOf } from '../support/code-blocks.ts';
import { root } from '../support/source.ts';

const blocks = ['docs/fields.md', 'docs/fields-reference.md'].flatMap((path) =>
  codeBlocksOf(path, readFileSync(join(root, path), 'utf8')),
);

function blockWith(language: string, words: string): string {
  const found = blocks.filter((one) => one.language === language && one.code.includes(words));
  assert.equal(found.length, 1, words);
  return (found[0] as CodeBlock).code;
}

const inputOf = ({ page }: Opened, id: string) =>
  page.frameLocator(`#${id} iframe`).locator('input').first();

test('the first page saves a card, and shows it to its owner', {
  skip: withoutBrowser,
}, async (t) => {
  const world = await startCardFields(t);
  const here = (text: string) =>
    text.replaceAll('http://127.0.0.1:8080', world.vault.url).replace('key_test_pub_…', world.key);
  const collect = here(blockWith('html', 'Save the card'));
  const status = '<p id="status"></p>';
  const listen = `<script>${blockWith('js', "addEventListener('error'")}</script>`;
  const reveal = blockWith('html', '<strongroom-reveal id="card"');
  // The guide says where `fields` and `token` come from, and what the server authorizes.
  const show = reveal
    .replace(
      /(?<=<script type="module">\n)/,
      "const token = new URLSearchParams(location.search).get('token');\n",
    )
    .replace(/(?<=sessions\.create\(\);\n)/, 'await window.authorize(nonce);\n');
  const page = collect.replace('</body>', `${status}${listen}</body>`);
  const opened = await world.open(t, page);
  await opened.page.click('#save');
  await opened.page.locator('#status:text("Check the marked fields.")').waitFor();
  await inputOf(opened, 'number').fill('4242 4242 4242 4242');
  await inputOf(opened, 'expiry').fill('1230');
  await inputOf(opened, 'code').fill('123');
  await opened.page.click('#save');
  await opened.page.locator('#result:text("XXXXXXXXXXXX4242")').waitFor();
  const { id } = JSON.parse(await opened.page.textContent('#result'));

  const reader = await world.vault.application();
  const owner = world.shop.page(collect.replace('</body>', `${show}</body>`));
  const shown = await world.open(t, `${owner}?token=${id}`, {
    prepare: (later) =>
      later.exposeFunction('authorize', (nonce: string) => {
        const rule = { priority: 1, permissions: ['token:read'], transform: 'reveal' };
        const conditions = [{ attribute: 'id', operator: 'equals', value: id }];
        const body = { nonce, rules: [{ ...rule, conditions }] };
        return world.vault.send('POST', '/sessions/authorize', { key: reader, body });
      }),
  });
  const output = shown.page.frameLocator('#card iframe').locator('output');
  assert.equal(await output.textContent(), '4242 4242 4242 4242');
  assert.ok(!(await shown.page.content()).replaceAll(' ', '').includes('4242424242424242'));
});

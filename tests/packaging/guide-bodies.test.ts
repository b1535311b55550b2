/** The JSON of the guides is what the vault takes: bodies of requests, and files that variables name. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readMapping } from '../../src/cli/bulk/mapping.ts';
import { readConfig } from '../../src/runtime/config/config.ts';
import { type CodeBlock, codeBlocksOf } from '../support/code-blocks.ts';
import { engineOf } from '../support/engines.ts';
import { committedPaths, root } from '../support/source.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { visa } from '../support/values.ts';
import { managementKey, startVault } from '../support/vault.ts';

const blocks = committedPaths()
  .filter((path) => path.endsWith('.md') && !/^(?:docs\/adr\/|CHANGELOG)/.test(path))
  .flatMap((path) => codeBlocksOf(path, readFileSync(join(root, path), 'utf8')))
  .filter(({ language }) => language === 'json');
const used = new Set<CodeBlock>();

/** The only block of a guide with these words. */
function blockOf(guide: string, words: string): string {
  const found = blocks.filter(
    ({ place, code }) => place.startsWith(`docs/${guide}.md:`) && code.includes(words),
  );
  assert.equal(found.length, 1, `${guide}: ${words}`);
  const [block] = found as [CodeBlock];
  used.add(block);
  return block.code;
}

test('bodies of requests are accepted', async (t) => {
  const vault = await startVault(t, engineOf('sqlite'));
  const post = async (path: string, body: unknown, key = managementKey) => {
    const response = await vault.send('POST', path, { key, body });
    assert.ok(response.status < 300, `${path}: ${response.text}`);
    return response.body;
  };
  await post('/applications', blockOf('access', 'egress_budget'));
  await post('/proxies', blockOf('proxies', '"Partner"'));
  const card = { id: 'order-4711-card', type: 'card', data: { ...visa } };
  await post('/tokens', card, await vault.application());
  const agent = await post('/applications', blockOf('agents', '"shopping agent"'));
  const live = JSON.parse(blockOf('agents-proxy', '"websocket"'));
  const permissions = ['proxy:invoke'];
  await post('/applications', { name: 'live', type: 'private', permissions, egress: [live] });
  const { placeholder } = await post('/placeholders', blockOf('agents', '"property"'), agent.key);
  assert.match(placeholder, /^sr_/);
  const asked = JSON.parse(blockOf('agents', '"application_id"'));
  await post('/egress/explain', { ...asked, application_id: agent.id });
});

test('files that variables and options name are read', (t) => {
  const directory = temporaryDirectory(t);
  const fileOf = (guide: string, words: string) => {
    const file = join(directory, `${guide}.json`);
    writeFileSync(file, blockOf(guide, words), { mode: 0o600 });
    return file;
  };
  const config = (more: Readonly<Record<string, string>>) =>
    readConfig({ STRONGROOM_DATA_DIR: directory, ...more });
  config({ STRONGROOM_CONFIG: fileOf('configuration', '"log_level"') });
  config({ STRONGROOM_RATE_LIMITS: fileOf('time-and-limits', '"failed_authentication"') });
  config({
    STRONGROOM_PUBLIC_URL: 'https://vault.example.com',
    STRONGROOM_OIDC_ISSUER: 'https://login.example.com',
    STRONGROOM_OIDC_CLIENT_ID: 'strongroom',
    STRONGROOM_OIDC_ROLES: fileOf('identity-provider', '"vault-support"'),
  });
  assert.equal(readMapping(fileOf('bulk', '"card_number"')).type, 'card');
});

test('every other block of JSON is one that the vault or a cloud writes', () => {
  const others = [
    'docs/access.md "decided_by"',
    'docs/agents.md "mcpServers"',
    'docs/audit-format.md "heads"',
    'docs/audit-format.md "removed_at"',
    'docs/expressions.md "errors"',
    'docs/root-key.md "kms:Encrypt"',
    'docs/webhooks.md "delivered_at"',
  ];
  const isOther = ({ place, code }: CodeBlock) =>
    others.some((one) => {
      const [path, word = ''] = one.split(' ');
      return place.startsWith(`${path}:`) && code.includes(word);
    });
  assert.deepEqual(
    blocks.filter((block) => !used.has(block) && !isOther(block)).map(({ place }) => place),
    [],
  );
});

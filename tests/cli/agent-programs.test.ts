/** The programs of the tutorial for agents, as it has them: each uses values that it never has. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, suite, test } from 'node:test';
import { withoutBrowser } from '../support/browser.ts';
import { codeBlocksOf } from '../support/code-blocks.ts';
import { startEgress } from '../support/egress.ts';
import { runProcess } from '../support/process.ts';
import { headerOf } from '../support/proxy-calls.ts';
import { python } from '../support/python.ts';
import { root } from '../support/source.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { newTenant } from '../support/tenant.ts';

const ends: (() => unknown)[] = [];
const lender = { after: (end: () => unknown) => void ends.unshift(end) };
after(async () => {
  for (const end of ends) await end();
});

const guide = 'docs/tutorials/agents.md';
const blocks = codeBlocksOf(guide, readFileSync(join(root, guide), 'utf8'));
const programIn = (language: string) => {
  const [block, ...others] = blocks.filter((one) => one.language === language);
  assert.ok(block && others.length === 0, `${guide} has one program in ${language}`);
  return block.code;
};

const { called, vault } = await startEgress(lender);
const { destination } = called;
const tenant = await newTenant(vault);
const visa = '4242424242424242';
const secret = 'plain-api-key-0123456789';
const data = { number: visa, expiration_month: 12, expiration_year: 2030 };
await tenant.token({ id: 'company-card', type: 'card', data });
await tenant.token({ id: 'provider-key', type: 'token', data: secret });
const folder = temporaryDirectory(lender);

/** As the tutorial starts it. */
async function run(
  words: readonly string[],
  { egress, variables, ...env }: { egress: object; variables: string; [name: string]: unknown },
) {
  const policy = { host: 'localhost', port: destination.port, ...egress };
  const key = await tenant.application({ permissions: ['proxy:invoke'], egress: [policy] });
  const fileOf = (name: string, text: string) => {
    const file = join(folder, name);
    writeFileSync(file, text, { mode: 0o600 });
    return file;
  };
  const files = ['--key-file', fileOf('a.key', key), '--variables', fileOf('a.vars', variables)];
  return runProcess(['agent', 'run', ...files, '--', ...words], {
    STRONGROOM_URL: vault.url,
    STRONGROOM_EGRESS_ADDRESS: new URL(vault.running.egressUrl ?? '').host,
    ...(env as Record<string, string>),
  });
}

const url = `https://localhost:${destination.port}`;
const noRequests = spawnSync(python, ['-c', 'import requests']).status !== 0;

suite('programs of the tutorial', () => {
  test('the script charges a card that it never has', {
    skip: noRequests && `not here: a Python with requests (${python})`,
  }, async () => {
    destination.behave(async ({ response, received }) => {
      response.end((await received).body);
    });
    const { code, stdout, stderr } = await run([python, '-c', programIn('python')], {
      egress: {
        methods: ['POST'],
        paths: ['/v1/charges'],
        tokens: ['provider-key', 'company-card'],
        places: ['header:authorization', 'json:card.number'],
      },
      variables: 'PROVIDER_KEY=token:provider-key\nCARD_NUMBER=token:company-card#number\n',
      PROVIDER_URL: url,
    });
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^200 /);
    assert.ok(!stdout.includes(visa), stdout);
    const [sent] = destination.requests.splice(0);
    assert.equal(headerOf(sent?.headers ?? [], 'authorization'), `Bearer ${secret}`);
    assert.equal(JSON.parse(String(sent?.body)).card.number, visa);
  });

  test('the agent fills the form of a shop in a browser with a card that it never has', {
    skip: withoutBrowser,
  }, async () => {
    const form = `<form method="post" action="/pay"><label>Card number <input name="card[number]"
      pattern="[0-9]{16}"></label><button>Pay</button></form>`;
    const bodies: string[] = [];
    destination.behave(async ({ request, response, received }) => {
      const body = String((await received).body);
      if (request.method === 'POST') bodies.push(body);
      response.setHeader('content-type', 'text/html; charset=utf-8');
      response.end(request.method === 'POST' ? `<p role="status">Paid with ${body}</p>` : form);
    });
    const words = ['node', '--input-type=module', '-e', programIn('js')];
    const { code, stdout, stderr } = await run(words, {
      egress: { tokens: ['company-card'], places: ['form:card[number]'] },
      variables: 'CARD_NUMBER=digits:company-card#number\n',
      SHOP_URL: url,
      CHROMIUM: '/usr/bin/chromium-headless-shell',
    });
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^Paid with card%5Bnumber%5D=\*{16}\s*$/);
    assert.deepEqual(bodies, [`card%5Bnumber%5D=${visa}`]);
  });
});

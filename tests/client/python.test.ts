/** The Python client does with a vault what the TypeScript client does, where there is a Python with httpx. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { operations } from '../../packages/client/src/wire.ts';
import { clientCallOf } from '../../packages/reference/src/samples/client-methods.ts';
import { pythonModules } from '../../scripts/python-client.ts';
import { clientsOf } from '../support/client.ts';
import { examplesIn } from '../support/client-examples.ts';
import { answer } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { startCalled } from '../support/proxy-calls.ts';
import { python, withoutPython as skip, withoutCryptography } from '../support/python.ts';
import { startReceiver } from '../support/receivers.ts';
import { committedPaths, root } from '../support/source.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { tenantsOf } from '../support/tenant.ts';
import { revealEverything } from '../support/vault.ts';

const folder = join(root, 'packages', 'python');
test('the generated modules are those of the present description; otherwise run npm run client:types', () => {
  const description = JSON.parse(readFileSync(join(root, 'docs', 'openapi.json'), 'utf8'));
  for (const [name, text] of Object.entries(pythonModules(description))) {
    const file = join(folder, 'src', 'strongroom', `${name}.py`);
    assert.equal(readFileSync(file, 'utf8'), text, name);
  }
});

test('the package has the version of the vault', () => {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const manifest = readFileSync(join(folder, 'pyproject.toml'), 'utf8');
  assert.ok(manifest.includes(`\nversion = "${version}"\n`));
});

test('every operation has a method of both clients', () => {
  // Those of the streams, those that page by number, and what the clients put together from others.
  const others = ['createTokens', 'exportTokens', 'listTokensByPage', 'searchTokensByPage'];
  const unneeded = ['getApplicationTemplate', 'getWebhookKeyVersion'];
  const sources = committedPaths()
    .filter((path) => /^packages\/client\/src\/(?!wire).*\.ts$/.test(path))
    .map((path) => readFileSync(join(root, path), 'utf8'))
    .join('\n');
  for (const id of Object.keys(operations)) {
    if (unneeded.includes(id)) continue;
    if (!others.includes(id)) assert.ok(clientCallOf(id), `${id} is not in client-methods.ts`);
    const isCalled = sources.includes(`'${id}'`) || id.endsWith('ByPage');
    assert.ok(isCalled, `no method of the TypeScript client calls ${id}`);
  }
});

async function run(file: string, input: string, environment: Record<string, string> = {}) {
  const child = spawn(python, [file], {
    env: {
      PATH: process.env['PATH'],
      PYTHONPATH: join(folder, 'src'),
      PYTHONDONTWRITEBYTECODE: '1',
      ...environment,
    },
  });
  const printed: Buffer[] = [];
  const complained: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => printed.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => complained.push(chunk));
  child.stdin.end(input);
  const [code] = await once(child, 'close');
  assert.equal(code, 0, String(Buffer.concat(complained)));
  return String(Buffer.concat(printed));
}

const called = await startCalled({ after });
const receiver = await startReceiver({ after }, { authority: called.destination.authority });
const environment = {
  ...called.environment,
  STRONGROOM_OUTBOUND_ALLOW: `${called.environment['STRONGROOM_OUTBOUND_ALLOW']},${receiver.destination.name}`,
};

test('calls of proxies from Python take no cookies along, and no path leads above them', {
  skip,
}, async () => {
  const printed = JSON.parse(await run(join(folder, 'tests', 'calls.py'), ''));
  assert.deepEqual(
    printed.seen.map(([, cookie]: [string, string | null]) => cookie),
    [null, null, null, 'own=1', 'own=2', null],
  );
  assert.equal(printed.seen.at(-1)[0], '/proxy/a..b/...c/%2f?x=../y');
  assert.deepEqual(printed.climbed, []);
});

test('logs of httpx have the requests of others, and none of the Python client', {
  skip,
}, async () => {
  const { log } = JSON.parse(await run(join(folder, 'tests', 'calls.py'), ''));
  assert.match(log, /INFO:httpx:.*https:\/\/shop\.example\.com\/async/);
  assert.match(log, /INFO:httpx:.*https:\/\/shop\.example\.com\/sync/);
  assert.doesNotMatch(log, /4242424242424242|vault\.example\.com|httpcore/);
});

onBothEngines('the Python client', (engine) => {
  const tenants = tenantsOf(engine, { environment });

  test('both clients do what a vault does', { skip }, async () => {
    const tenant = await tenants();
    const { vault, admin, apiKey } = await clientsOf(tenant);
    called.destination.behave(answer(402, ['content-type', 'application/json'], '{"paid":false}'));
    const { secret, id } = await admin.webhooks.create({
      name: 'w',
      url: receiver.url,
      events: ['token.created'],
    });
    const token = await vault.tokens.create({ type: 'token', data: 'an event' });
    const isOwn = ({ event }: { event: { data: { token?: { id: string } } } }) =>
      event.data.token?.id === token.id;
    await receiver.until((arrivals) => arrivals.some(isOwn));
    const arrival = receiver.arrivals.find(isOwn);
    assert.ok(arrival);
    await admin.webhooks.delete(id);
    const rule = { ...revealEverything, permissions: ['token:create'], transform: 'mask' };
    const input = {
      url: tenant.vault.url,
      private_key: apiKey,
      management_key: tenant.managementKey,
      public_key: await tenant.application({ type: 'public', rules: [rule] }),
      destination: called.url,
      webhook: {
        body: arrival.body.toString(),
        headers: arrival.headers,
        secret,
        public_key: await vault.webhooks.publicKey(),
      },
    };
    const printed = await run(join(folder, 'tests', 'exercise.py'), JSON.stringify(input));
    const { events } = JSON.parse(printed) as { events: string[] };
    assert.equal(events[0], 'token.created');
    // The second signature needs another package.
    assert.ok(['token.created', 'no cryptography'].includes(events[1] ?? ''));
  });

  test('the examples of its documents run', { skip }, async (t) => {
    const directory = temporaryDirectory(t);
    const tenant = await tenants();
    const { apiKey } = await clientsOf(tenant);
    await tenant.token({ id: 'order-4711-card', type: 'token', data: 'Ada Lovelace' });
    for (const path of ['docs/python.md', 'packages/python/README.md']) {
      const examples = examplesIn(path, readFileSync(join(root, path), 'utf8'), 'python');
      assert.ok(examples.length > 0);
      for (const { name, code } of examples) {
        const file = join(directory, 'example.py');
        writeFileSync(file, `${code}\n`);
        const keys = {
          STRONGROOM_URL: tenant.vault.url,
          STRONGROOM_KEY: apiKey,
          MANAGEMENT_KEY: tenant.managementKey,
        };
        if (code.includes('strongroom.verify') && withoutCryptography) continue;
        await assert.doesNotReject(run(file, '', keys), name);
      }
    }
  });
});

/** The client does the same in Chromium, in every version of Node that is here, in Deno, in Bun and in workerd. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { build } from 'esbuild';
import { startBrowser, withoutBrowser } from '../support/browser.ts';
import { clientsOf } from '../support/client.ts';
import { type ExerciseInput, expected } from '../support/client-exercise.ts';
import { answer } from '../support/destination.ts';
import { engineOf } from '../support/engines.ts';
import { linesOfLog } from '../support/logs.ts';
import { findNode24 } from '../support/node-24.ts';
import { nextLook } from '../support/poll.ts';
import { runProgram } from '../support/programs.ts';
import { startCalled } from '../support/proxy-calls.ts';
import { startReceiver } from '../support/receivers.ts';
import { root } from '../support/source.ts';
import { freePort, temporaryDirectory } from '../support/temporary.ts';
import { newTenant } from '../support/tenant.ts';
import { visa } from '../support/values.ts';
import { revealEverything, startVault, type TestVault } from '../support/vault.ts';

const ends: (() => unknown)[] = [];
const lender = { after: (end: () => unknown) => void ends.unshift(end) };
const called = await startCalled({ after });
const receiver = await startReceiver({ after }, { authority: called.destination.authority });
let vault: TestVault;
let program: string;

before(async () => {
  const paid = answer(402, ['content-type', 'application/json'], '{"paid":false}');
  called.destination.behave(paid);
  vault = await startVault(lender, engineOf('sqlite'), {
    environment: {
      ...called.environment,
      STRONGROOM_OUTBOUND_ALLOW: `${called.url.slice('https://'.length)},${receiver.destination.name}`,
    },
  });
  const { outputFiles } = await build({
    entryPoints: [join(root, 'tests', 'support', 'client-exercise.ts')],
    bundle: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    write: false,
  });
  program = outputFiles[0]?.text ?? '';
});

after(async () => {
  for (const end of ends) await end();
});

/** A tenant of its own, with an event that was delivered and a log. */
async function inputOf(): Promise<ExerciseInput> {
  const tenant = await newTenant(vault);
  const { vault: client, admin, apiKey } = await clientsOf(tenant);
  const { secret } = await admin.webhooks.create({
    name: 'w',
    url: receiver.url,
    events: ['token.created'],
  });
  const { id } = await client.tokens.create({ type: 'token', data: 'an event' });
  await receiver.until((all) => all.some(({ event }) => event.data.token?.id === id));
  const arrival = receiver.arrivals.find(({ event }) => event.data.token?.id === id);
  assert.ok(arrival);
  await admin.logs.checkpoint();
  const proxy = await admin.proxies.create({ name: 'p', destination_url: called.url });
  const rule = { ...revealEverything, permissions: ['token:create'] };
  return {
    url: vault.url,
    privateKey: apiKey,
    publicKey: await tenant.application({
      type: 'public',
      rules: [{ ...rule, transform: 'mask' }],
    }),
    managementKey: tenant.managementKey,
    number: visa.number,
    proxyKey: proxy.key,
    webhook: {
      body: arrival.body.toString(),
      headers: arrival.headers,
      secret,
      publicKey: await client.webhooks.publicKey(),
    },
    log: await linesOfLog(vault, tenant.id),
  };
}

/** Those of the machine, and more in TEST_RUNTIMES, separated by commas. */
const runtimes: Readonly<Record<string, readonly string[]>> = {
  'this Node': [process.execPath],
  'the Node of the machine': ['/usr/bin/node'],
  'Node 24': [(await findNode24()) ?? 'node-24'],
  Deno: ['deno', 'run', '--allow-net', '--allow-env'],
  Bun: ['bun', 'run'],
  ...Object.fromEntries(
    (process.env['TEST_RUNTIMES'] ?? '')
      .split(',')
      .filter(Boolean)
      .map((path) => [path, [path]]),
  ),
};

for (const [name, [command = '', ...flags]] of Object.entries(runtimes)) {
  const { stdout, error } = spawnSync(command, ['--version'], { encoding: 'utf8' });
  const version = stdout?.split('\n')[0]?.trim();
  const skip = error || !version ? `not here: ${command}` : false;
  test(`the client in ${name} ${version ?? ''}`, { skip }, async (t) => {
    const input = await inputOf();
    const file = join(temporaryDirectory(t), 'exercise.mjs');
    const end = `console.log('RESULT' + JSON.stringify(await exercise(${JSON.stringify(input)})));`;
    writeFileSync(file, `${program}\n${end}\n`);
    const ran = await runProgram([command, ...flags, file], {});
    assert.equal(ran.code, 0, ran.stderr);
    const [shown = '', result = ''] = ran.stdout.split('RESULT');
    assert.deepEqual(JSON.parse(result), expected);
    assert.match(shown, /hidden|Getter/);
    assert.ok(!shown.includes(visa.number), shown);
  });
}

const withoutWorkerd = spawnSync('workerd', ['--version']).error && 'not here: workerd';
test('the client in workerd, an edge runtime', { skip: withoutWorkerd }, async (t) => {
  const input = await inputOf();
  const directory = temporaryDirectory(t);
  const port = await freePort();
  const respond = `Response.json(await exercise(${JSON.stringify(input)}))`;
  writeFileSync(
    join(directory, 'worker.mjs'),
    `${program}\nexport default { async fetch() { return ${respond}; } };\n`,
  );
  writeFileSync(
    join(directory, 'config.capnp'),
    `using Workerd = import "/workerd/workerd.capnp";
const worker :Workerd.Worker = (
  modules = [(name = "worker", esModule = embed "worker.mjs")],
  compatibilityDate = "2026-11-01",
  globalOutbound = "network");
const config :Workerd.Config = (
  services = [(name = "main", worker = .worker), (name = "network", network = (allow = ["local"]))],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")]);
`,
  );
  const child = spawn('workerd', ['serve', join(directory, 'config.capnp')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const shown: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => shown.push(chunk));
  t.after(() => child.kill());
  let response: Response | undefined;
  while (!response) {
    assert.equal(child.exitCode, null);
    response = await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined);
    if (!response) await nextLook();
  }
  assert.deepEqual(await response.json(), expected);
  child.kill();
  await once(child, 'close');
  const text = String(Buffer.concat(shown));
  assert.match(text, /hidden/);
  assert.ok(!text.includes(visa.number), text);
});

test('the client in Chromium, on a page of another origin', { skip: withoutBrowser }, async (t) => {
  const input = await inputOf();
  const server = createServer((request, response) => {
    const isProgram = request.url === '/exercise.js';
    response.writeHead(200, { 'content-type': isProgram ? 'text/javascript' : 'text/html' });
    response.end(isProgram ? program : '<!doctype html><title>A shop</title>');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const browser = await startBrowser(t);
  const page = await browser.newPage();
  const shown: string[] = [];
  page.on('console', (message: { text(): string }) => shown.push(message.text()));
  await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  const seen = await page.evaluate(
    async (given: ExerciseInput) => (await import('/exercise.js' as string)).exercise(given),
    input,
  );
  assert.deepEqual(seen, expected);
  assert.ok(shown.length > 0);
  assert.ok(!shown.join().includes(visa.number), shown.join('\n'));
});

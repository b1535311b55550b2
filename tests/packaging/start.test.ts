/** What a start of the published package reads: what only some commands or requests need is not part of it. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { bundle } from '../../scripts/bundle.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/** Modules that a start of the embedded vault imports one after the other, each with all that it imports. */
const startOf = ['cli/commands', 'cli/serve', 'runtime/request-worker', 'store/sqlite/engine'];

const neededLater = [/\/commander\//, /^src\/api\/(?:openapi|page)\//, /^src\/cli\/select\.ts$/];

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

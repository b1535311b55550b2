/** The examples in comments and documents of the client have the right types and run, and no public name lacks one. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type Example, examplesIn, moduleOf, worldOf } from '../support/client-examples.ts';
import { engineOf } from '../support/engines.ts';
import { typeErrors } from '../support/packages.ts';
import { startCalled } from '../support/proxy-calls.ts';
import { committedPaths, root } from '../support/source.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { startVault, type TestVault } from '../support/vault.ts';

const source = join(root, 'packages', 'client', 'src');
const entries = {
  '@strongroom/client': join(source, 'client.ts'),
  '@strongroom/client/verify': join(source, 'verify.ts'),
};
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const commented = committedPaths().filter((path) => /^packages\/client\/src\/.*\.ts$/.test(path));
const documents = ['docs/client.md', 'packages/client/README.md'];
/** The steps of a tutorial are one program. Those of card fields and of agents do not use the client. */
const tutorials = committedPaths()
  .filter((path) => /^docs\/tutorials\/(?!accept-cards|agents).*\.md$/.test(path))
  .map((path): Example => {
    const steps = examplesIn(path, read(path));
    assert.ok(steps.length > 1, path);
    return { name: path, code: steps.map(({ code }) => code).join('\n') };
  });
const examples = [
  ...[...commented, ...documents].flatMap((path) => examplesIn(path, read(path))),
  ...tutorials,
];

/** What a destination got in place of a value. */
const charged: string[] = [];
const ends: (() => unknown)[] = [];
const lender = { after: (end: () => unknown) => void ends.unshift(end) };
const called = await startCalled({ after });
let running: TestVault;
const files = new Map<Example, string>();

before(async () => {
  called.destination.behave(async ({ response, received }) => {
    const { body } = await received;
    // An expression that finds nothing gives null, which no example means.
    if (/:null\b/.test(body.toString())) charged.push(body.toString());
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"paid":true}');
  });
  running = await startVault(lender, engineOf('sqlite'), { environment: called.environment });
  const directory = temporaryDirectory(lender);
  for (const [at, example] of examples.entries()) {
    const file = join(directory, `example-${at}.mts`);
    writeFileSync(file, moduleOf(example, entries));
    files.set(example, file);
  }
});

after(async () => {
  for (const end of ends) await end();
});

test('every example has the right types', () => {
  const names = new Map([...files].map(([{ name }, file]) => [file.split('/').at(-1), name]));
  const errors = typeErrors([...files.values()]).map(
    ({ file, message }) => `${names.get(file.split('/').at(-1)) ?? file}: ${message}`,
  );
  assert.deepEqual(errors, []);
});

test('every example runs against a vault', async () => {
  const failed: string[] = [];
  for (const [example, file] of files) {
    const { run } = await import(file);
    try {
      await run(await worldOf(running, called));
    } catch (error) {
      failed.push(`${example.name}: ${error instanceof Error ? error.stack : String(error)}`);
    }
  }
  assert.deepEqual(failed, []);
  assert.deepEqual(charged, []);
});

test('every public name has a comment, and what can be called or made has an example', () => {
  const generated = 'packages/client/src/wire.ts';
  const offered = new Set(
    ['client.ts', 'verify.ts'].flatMap((file) => {
      const text = readFileSync(join(source, file), 'utf8');
      const lists = [...text.matchAll(/export (?:type )?\{(.*?)\} from '(.*?)'/gs)];
      return lists.flatMap(([, names = '']) => names.match(/\b(?!type\b)\w+/g) ?? []);
    }),
  );
  const lacking: string[] = [];
  const seen = new Set<string>();
  for (const path of commented) {
    const text = read(path);
    const declaration =
      /^export (?:abstract )?(?:async )?(?:class|interface|type|function|const) (\w+)/gm;
    for (const { index, 1: name = '' } of text.matchAll(declaration)) {
      if (!offered.has(name)) continue;
      seen.add(name);
      const comment = commentBefore(text, index);
      if (comment === undefined) lacking.push(`${path}: ${name}`);
      else if (path !== generated && !comment.includes('@example'))
        lacking.push(`${path}: ${name}`);
    }
    // What a caller uses of a class.
    const method =
      /^ {2}(?:async )?\*?(\w+)(?:<[^>]*>)?\((?!.*\bconnection: Connection\)|.*\);$)/gm;
    const isOffered = [...offered].some((name) => text.includes(`export class ${name} `));
    for (const { index, 1: name = '' } of isOffered ? text.matchAll(method) : []) {
      if (name === 'constructor') continue;
      const comment = commentBefore(text, index);
      if (!comment?.includes('@example')) lacking.push(`${path}: ${name}()`);
    }
  }
  assert.deepEqual(lacking, []);
  assert.deepEqual(
    [...offered].filter((name) => !seen.has(name)),
    [],
  );
  assert.ok(examples.length > 100);
});

/** The documentation that ends right before this place. */
function commentBefore(text: string, index: number): string | undefined {
  const before = text.slice(0, index).trimEnd();
  return before.endsWith('*/') ? before.slice(before.lastIndexOf('/**')) : undefined;
}

/** The samples of the reference are programs: they run, or at least their compilers accept them. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, type TestContext, test } from 'node:test';
import {
  type Description,
  type Operation,
  operationsOf,
} from '../../packages/reference/src/document.ts';
import { requestOf, type Target } from '../../packages/reference/src/samples/request.ts';
import { type Language, languages } from '../../packages/reference/src/samples/samples.ts';
import { type PublishedOperation, publishedIn } from '../../src/api/openapi/published-operation.ts';
import { engineOf, engineVariable } from '../support/engines.ts';
import { runExamples, substitute } from '../support/example-story.ts';
import { installClient, typeErrors } from '../support/packages.ts';
import { type Ran, runProgram } from '../support/programs.ts';
import { python, withoutPython } from '../support/python.ts';
import { root } from '../support/source.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { newTenant } from '../support/tenant.ts';
import { sectionsOf, startVault } from '../support/vault.ts';

const target: Target = {
  url: 'http://127.0.0.1:8080',
  keyHeader: 'SVC-API-KEY',
  key: undefined,
};
let described: readonly Operation[];

before(async (t) => {
  const lender = t as TestContext;
  const vault = await startVault(lender, engineOf('sqlite'));
  const { body } = await vault.send('GET', '/openapi.json');
  described = operationsOf(body as Description);
});

function sampleOf(operation: Operation, language: Language, changed: Partial<Target> = {}): string {
  return languages[language].of(requestOf(operation), { ...target, ...changed });
}

test('every sample in TypeScript has the types of the client', (t) => {
  const directory = temporaryDirectory(t);
  const client = JSON.stringify(join(root, 'packages', 'client', 'src', 'client.ts'));
  const files = described.map((operation) => {
    const file = join(directory, `${operation.operationId}.mts`);
    writeFileSync(file, sampleOf(operation, 'typescript').replace("'@strongroom/client'", client));
    return file;
  });
  const environment = join(directory, 'environment.d.ts');
  writeFileSync(environment, 'declare const process: { env: Record<string, string | undefined> };');
  assert.ok(files.length > 0);
  assert.deepEqual(
    typeErrors([...files, environment]).map(
      ({ file, message }) => `${file.split('/').at(-1)}: ${message}`,
    ),
    [],
  );
});

test('every sample in Go is formatted as its tool does, and every sample in Java compiles', async (t) => {
  const directory = temporaryDirectory(t);
  const java = described.map((operation, at) => {
    writeFileSync(join(directory, `${operation.operationId}.go`), `${sampleOf(operation, 'go')}\n`);
    const folder = join(directory, `java-${at}`);
    mkdirSync(folder);
    const file = join(folder, 'Example.java');
    const text = sampleOf(operation, 'java').replace('class Example', `class Example${at}`);
    writeFileSync(file, text);
    return file;
  });
  const formatted = await runProgram(['gofmt', '-l', directory], {});
  if (formatted.code !== 'absent') assert.deepEqual([formatted.stdout, formatted.stderr], ['', '']);
  const compiled = await runProgram(['javac', '-d', join(directory, 'classes'), ...java], {});
  if (compiled.code !== 'absent') assert.equal(compiled.code, 0, compiled.stderr);
  for (const [name, { code }] of Object.entries({ gofmt: formatted, javac: compiled })) {
    if (code === 'absent') t.diagnostic(`not here: ${name}`);
  }
});

/** How a program of each language is run. */
const programs: Readonly<Record<Language, { words: readonly string[]; file: string }>> = {
  curl: { words: ['sh'], file: 'sample.sh' },
  typescript: { words: [process.execPath], file: 'sample.ts' },
  python: { words: [python], file: 'sample.py' },
  go: { words: ['go', 'run'], file: 'sample.go' },
  java: { words: ['java'], file: 'Example.java' },
};

/** Compiling takes seconds in Java, so a single operation has to do, and minutes at the first run of Go. */
const slowLanguages: readonly Language[] =
  process.env[engineVariable] === 'both' ? ['go', 'java'] : ['java'];
const slowOperation = 'createApplication';
const run = (Object.keys(languages) as Language[]).filter(
  (language) => language !== 'go' || slowLanguages.includes(language),
);

/**
 * Of each section the first operation that reads; where none does, the first that can be repeated: it gives
 * nothing an id.
 */
function chosenOf(operations: readonly PublishedOperation[]): ReadonlySet<PublishedOperation> {
  const answered = operations.filter(
    ({ operation: { reply, example } }) => reply.body !== undefined && example.status === undefined,
  );
  const bySection = Map.groupBy(answered, ({ tag }) => tag).values();
  const chosen = bySection.map(
    (ones) => ones.find(({ operation }) => operation.method === 'GET') ?? ones.find(mayRepeat),
  );
  return new Set(chosen.filter((one) => one !== undefined));
}

function mayRepeat({ operation }: PublishedOperation): boolean {
  return !JSON.stringify(operation.example.body ?? null).includes('"id":');
}

test('one operation of each section runs as the reference shows it, in each language', async (t) => {
  const vault = await startVault(t, engineOf('sqlite'));
  const operations = publishedIn(await sectionsOf(vault));
  const directory = temporaryDirectory(t);
  await installClient(directory);
  const chosen = chosenOf(operations);
  const ran: string[] = [];
  await runExamples(
    await newTenant(vault),
    operations,
    async ({ operation, published }, { key, real }) => {
      const one = described.find(({ operationId }) => operationId === operation.id);
      if (!one) return;
      const isChosen = chosen.has(published);
      if (isChosen) ran.push(published.tag);
      for (const language of run) {
        const isSlow = slowLanguages.includes(language);
        if (isSlow ? operation.id !== slowOperation : !isChosen) continue;
        if (language === 'python' && withoutPython) continue;
        const { words, file } = programs[language];
        const path = join(directory, file);
        const text = sampleOf(one, language, { url: vault.url });
        writeFileSync(path, `${substitute(text, real)}\n`);
        const result = await runProgram([...words, path], environmentOf(directory, key));
        if (isAbsent(result)) continue;
        assert.equal(result.code, 0, `${operation.id} in ${language}: ${result.stderr}`);
        assert.notEqual(result.stdout, '', `${operation.id} in ${language}`);
        assert.doesNotMatch(
          result.stdout,
          /^\{"type":"urn:|^[45]\d\d /,
          `${operation.id} in ${language}`,
        );
      }
    },
  );
  const tags = new Set(operations.map(({ tag }) => tag));
  assert.deepEqual(ran.sort(), [...tags].sort());
});

/** Not every machine has every language, and a shell gives 127 without curl. */
function isAbsent({ code }: Ran): boolean {
  return code === 'absent' || code === 127;
}

function environmentOf(directory: string, key: string): Record<string, string> {
  return {
    STRONGROOM_KEY: key,
    HOME: directory,
    PYTHONPATH: join(root, 'packages', 'python', 'src'),
    PYTHONDONTWRITEBYTECODE: '1',
  };
}

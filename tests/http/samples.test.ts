/** The samples of the reference are programs that run: by a shell, by Node and by Python. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { type PublishedOperation, publishedIn } from '../../src/api/openapi/published-operation.ts';
import { preludesOf, type Samples, samplesOf } from '../../src/api/page/samples.ts';
import { engineOf } from '../support/engines.ts';
import { type EachStep, runExamples, substitute } from '../support/example-story.ts';
import { runProgram } from '../support/programs.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { newTenant } from '../support/tenant.ts';
import { sectionsOf, startVault } from '../support/vault.ts';

const keyHeader = 'SVC-API-KEY';
const preludes = preludesOf(keyHeader);

/** How each sample is run, and how it prints what it has read. */
const programs: Readonly<Record<keyof Samples, { words: string[]; file: string; print: string }>> =
  {
    curl: { words: ['sh'], file: 'sample.sh', print: '' },
    typescript: {
      words: [process.execPath],
      file: 'sample.ts',
      print: 'console.log(JSON.stringify(result));',
    },
    python: { words: ['python3'], file: 'sample.py', print: 'print(json.dumps(result))' },
  };

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
  const chosen = chosenOf(operations);
  const ran: string[] = [];
  const runSamples: EachStep = async ({ operation, published, answered }, { key, real }) => {
    if (!chosen.has(published)) return;
    ran.push(published.tag);
    const samples = samplesOf(published, keyHeader);
    for (const language of ['curl', 'typescript', 'python'] as const) {
      const { words, file, print } = programs[language];
      const text = [preludes[language], substitute(samples[language], real), print].join('\n');
      const path = join(directory, file);
      const local = text.replace('http://127.0.0.1:8080', vault.url).replace('your key', key);
      writeFileSync(path, `${local}\n`);
      const { code, stdout, stderr } = await runProgram([...words, path], { STRONGROOM_KEY: key });
      // Not every machine has a Python, or curl.
      if (code === 'absent' || code === 127) continue;
      assert.equal(code, 0, `${operation.id} in ${language}: ${stderr}`);
      assert.deepEqual(formOf(parse(stdout)), formOf(answered), `${operation.id} in ${language}`);
    }
  };
  await runExamples(await newTenant(vault), operations, runSamples);
  const tags = new Set(operations.map(({ tag }) => tag));
  assert.deepEqual(ran.sort(), [...tags].sort());
});

/** A stream that curl shows has a line for each part. */
function parse(text: string): unknown {
  const lines = text.trimEnd().split('\n');
  const [first = ''] = lines;
  return lines.length === 1 ? JSON.parse(first) : lines.map((line) => JSON.parse(line));
}

function formOf(value: unknown): unknown {
  if (Array.isArray(value)) return 'a list';
  assert.ok(typeof value === 'object' && value !== null);
  return Object.keys(value).sort();
}

/** Documents describe the repository as it is. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  countBrought,
  countPackages,
  type LockedPackages,
  stalePaths,
} from './support/documents.ts';
import { deadLinks } from './support/links.ts';
import { committedPaths, root } from './support/source.ts';

const read = (path: string) => readFileSync(join(root, path), 'utf8');

test('a file or folder that a document names is there', () => {
  const known = committedPaths();
  const documents = known.filter((path) => path.endsWith('.md'));
  assert.deepEqual(
    stalePaths(
      documents.map((path) => ({ path, text: read(path) })),
      known,
    ),
    [],
  );
});

test('a file or folder that a document names is there: the rule can fail', () => {
  const known = ['src/vault/tokens/row.ts', 'docs/a.md'];
  const staleIn = (text: string) => stalePaths([{ path: 'docs/a.md', text }], known);
  const stale = ['src/vault/tokens/rows.ts', 'src/tokens/', 'tokens/rows.ts', 'tokens/row.ts'];
  const text = `See\n${stale.map((path) => `\`${path}\``).join(', ')}`;
  assert.deepEqual(
    staleIn(text),
    stale.slice(0, 3).map((path) => `docs/a.md:2 names ${path}, which does not exist`),
  );
  assert.equal(staleIn('`node src/a.ts`').length, 1);
  const right = '`src/vault/`, `row.ts`, `/tokens/`, `token.id`, [a](src/none.ts)';
  assert.deepEqual(staleIn(`${right}\n\`\`\`sh\n\`src/none.ts\`\n\`\`\``), []);
});

test('a link of a document leads to a file, and to a heading, that is there', () => {
  const known = committedPaths();
  const documents = known.filter((path) => path.endsWith('.md'));
  const texts = new Map(documents.map((path) => [path, read(path)]));
  assert.deepEqual(deadLinks(texts, new Set(known)), []);
});

test('no guide has more than 2,500 words', () => {
  const guides = committedPaths().filter((path) => /^docs\/(?:tutorials\/)?[^/]+\.md$/.test(path));
  assert.ok(guides.length > 40);
  const long = guides.filter((path) => read(path).split(/\s+/).length > 2_500);
  assert.deepEqual(long, []);
});

test('each document of docs/ is in its index', () => {
  const index = read('docs/README.md');
  const guides = committedPaths().filter((path) => /^docs\/[^/]+\.md$/.test(path));
  const missing = guides.filter((path) => !index.includes(`](${path.slice('docs/'.length)})`));
  assert.deepEqual(missing, ['docs/README.md']);
});

test('the record of dependencies counts the packages of the lock file', () => {
  const record = read('docs/adr/0001-runtime-dependencies.md');
  const { packages } = JSON.parse(read('package-lock.json')) as { packages: LockedPackages };
  const { dependencies } = JSON.parse(read('package.json')) as { dependencies: object };
  const words = ['no', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine'];
  words.push('ten', 'eleven', 'twelve', 'thirteen', 'fourteen', 'fifteen', 'sixteen', 'seventeen');
  words.push('eighteen', 'nineteen', 'twenty', 'twenty-one', 'twenty-two', 'twenty-three');
  words.push('twenty-four', 'twenty-five', 'twenty-six');
  const direct = words[Object.keys(dependencies).length];
  assert.match(record, new RegExp(`^${direct} packages, each with an exact version`, 'im'));
  const { all, MIT, ...others } = countPackages(packages);
  const rest = Object.entries(others).map(([licence, count]) => `${words[count]} under ${licence}`);
  for (const said of [`${all} packages`, `${MIT} under MIT`, ...rest]) {
    assert.ok(record.replaceAll('\n', ' ').includes(said), said);
  }
  for (const name of Object.keys(dependencies)) {
    const row = record.split('\n').find((line) => line.startsWith(`| \`${name}\``));
    const brought = row?.split(' | ')[4];
    assert.equal(brought, String(countBrought(packages, name)), name);
  }
});

test('each decision record has a number of its own, which its title repeats', () => {
  const paths = committedPaths().filter((path) => /^docs\/adr\/\d/.test(path));
  const numbers = paths.map((path) => Number(/\/(\d{4})-/.exec(path)?.[1]));
  assert.deepEqual(
    numbers.filter((number, at) => numbers.indexOf(number) !== at),
    [],
  );
  const titled = paths.map((path) => Number(/^# (\d+)\. /.exec(read(path))?.[1]));
  assert.deepEqual(titled, numbers);
});

/** The rules of the house (STYLE.md) as tests, and for each rule a sample that breaks it. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { unusedExports, usedByTestsAlone } from './support/exports.ts';
import { ranks } from './support/rooms.ts';
import { committedPaths, readSource, root, type SourceFile, sourceFile } from './support/source.ts';
import {
  type Ban,
  bannedWords,
  castBreaches,
  columnBreaches,
  dependencyBreaches,
  folderCycles,
  headless,
  importCycles,
  type Place,
  rankBreaches,
  strayImports,
} from './support/tidy.ts';

const columnsMax = 120;

const places: readonly Place[] = [
  { library: /^(?:@fastify\/.*|fast-json-stringify|find-my-way)$/, allowed: /^src\/http\// },
  { library: /^(?:kysely|pg|node:sqlite)(?:\/|$)/, allowed: /^src\/store\// },
  { library: /^(?:liquidjs|json-p3)$/, allowed: /^src\/expressions\// },
  { library: /^re2js$/, allowed: /^src\/proxies\/transforms\// },
  { library: /^quickjs-wasi$/, allowed: /^src\/reactors\/sandbox\/child\// },
  { library: /^jose$/, allowed: /^src\/keys\// },
  { library: /^@modelcontextprotocol\/.*$/, allowed: /^src\/http\/mcp\// },
  { library: /^(?:@simplewebauthn\/.*|openid-client)$/, allowed: /^src\/access\/people\// },
  {
    library: /^node:crypto$/,
    allowed: /^src\/keys\//,
    exceptions: {
      'src/base/random.ts': 'turns the system generator into a parameter',
      'src/outbound/websocket.ts':
        'the accept key of RFC 6455, without a key, where src/keys may not be imported',
      'src/reactors/sandbox/child/crypto.ts':
        "computes for tenants' code, under keys that the code has",
      'src/expressions/filters/hmac.ts': 'the hmac filter, under a key its author writes',
      'src/store/log-chain/entries.ts':
        'hashes log entries for the store, which may not import src/keys',
      'src/store/log-chain/proof.ts':
        'proves blocks where the store writes them, which may not import src/keys',
    },
  },
];

/** Types outside `Brand<…>` whose mere existence proves something, so that a cast would be a lie. */
const proofs = ['Secret'];

const names: readonly Ban[] = [
  {
    in: 'path',
    pattern: /(?<=\/)(?:utils?|helpers?|common|index)(?=[/.])/,
    instead: 'name it after what it holds',
  },
  {
    in: 'code',
    pattern: /\b\w*(?:Manager|Service|Helper)\b/,
    instead: 'name it after what it does',
  },
  { in: 'code', pattern: /\bexport\s*\*/, instead: 'import from the file that owns the name' },
];

const shortcuts: readonly Ban[] = [
  {
    in: 'code',
    pattern: /\.\.\.(?:\w+\.)*\w*[sS]tore\b|\): Store\b/,
    allowed: /^(?:src\/store\/(?:commit\/steps|notify-after-commit)\.ts|tests\/.*|bench\/.*)$/,
    instead:
      'nothing lies around a store: a commit has a step for it, in src/runtime/commit-steps.ts',
  },
  {
    in: 'code',
    pattern: /\bprocess\s*\.\s*env\b/,
    allowed: /^src\/(?:runtime\/config\/config|cli\/main)\.ts$/,
    instead: 'take it from the configuration',
  },
  {
    in: 'code',
    pattern: /\bprocess\s*\.\s*(?:stdin|stdout|stderr|argv|exit|exitCode)\b/,
    allowed: /^src\/(?:reactors\/sandbox\/child\/main|cli\/agent\/inside)\.ts$/,
    instead: 'take it from the terminal of the command, so that several can run in one process',
  },
  { in: 'code', pattern: /\bas\s+any\b/, instead: 'parse it' },
  { in: 'text', pattern: /@ts-(?:ignore|nocheck|expect-error)/, instead: 'make the types agree' },
  {
    in: 'code',
    pattern: /\bconsole\s*\./,
    allowed: /^src\/cli\//,
    instead: 'use the log, which has an allow-list',
  },
  {
    in: 'code',
    pattern: /\b(?:selectFrom|insertInto|deleteFrom|updateTable)\b/,
    allowed: /^src\/store\//,
    instead: 'name the query in src/store/queries',
  },
  {
    in: 'code',
    pattern: /\bType\s*\.\s*(?:Object|Partial)\s*\(/,
    allowed: /^src\/(?!api\/)|^src\/api\/declaration\//,
    instead: 'use object, which asks for the meaning of each attribute',
  },
  { in: 'text', pattern: /\b(?:TODO|FIXME|XXX)\b/, instead: 'do it or open an issue' },
  { in: 'text', pattern: /keep(?:ing)? (?:\w+ )*?in sync/i, instead: 'say it in one place' },
];

/** Words that a reader whose first language is not English stumbles over (STYLE.md). */
const privateWords: readonly Ban[] = [
  { in: 'text', pattern: /\b(?:un)?told\b/i, instead: 'say who is notified, or what is recorded' },
  { in: 'text', pattern: /\bnone that is\b/i, instead: 'say what it is not' },
  { in: 'text', pattern: /\bstand(?:s|ing)? beside\b/i, instead: 'next to, or combined with' },
  { in: 'text', pattern: /\bof late\b/i, instead: 'recently' },
  { in: 'text', pattern: /\banew\b/i, instead: 'again' },
  { in: 'text', pattern: /\w*(?:authoris|serialis)\w*/i, instead: 'spell it with z' },
];

const timers: readonly Place[] = [
  { library: /^(?:node:)?timers\/promises$/, allowed: /^tests\/support\// },
];

const sleeps: readonly Ban[] = [
  {
    in: 'code',
    pattern: /\bnew Promise\b[^;]*?\bsetTimeout\s*\(|\bpromisify\(setTimeout\)/,
    allowed: /^tests\/support\//,
    instead: 'wait for the event or move the clock',
  },
];

const omissions: readonly Ban[] = [
  { in: 'code', pattern: /\.(?:only|skip|todo)\s*\(/, instead: 'run it or delete it' },
  {
    in: 'code',
    pattern: /\b(?:only|skip|todo)\s*:\s*(?:true\b|['"`])/,
    instead: 'run it or delete it',
  },
];

const strangers: readonly Ban[] = [
  {
    in: 'text',
    pattern: /(?<![\w.*/-])\/(?:work|root|Users|home\/\w+)\/[\w.]/,
    instead: 'that is a path of one machine',
  },
  {
    in: 'text',
    pattern: /\bregistry\.(?:npmjs|yarnpkg|npmmirror)\.\w+|\bpypi\.org|\bstatic\.crates\.io/,
    instead: 'the lock file names no host',
  },
  {
    in: 'text',
    pattern: /"resolved"\s*: "/,
    instead: 'npm adds it; omit-lockfile-registry-resolved omits it',
  },
];

type Samples = Readonly<Record<string, string>>;

interface Rule {
  readonly guarantee: string;
  readonly covers: RegExp;
  readonly breaches: (files: readonly SourceFile[]) => string[];
  /** Files of which each is or contains exactly one breach. */
  readonly breaking: readonly Samples[];
  /** Files that come close and break nothing. */
  readonly keeping: Samples;
}

const source = /^src\/.*\.ts$/;
/** Of the server, and of the packages for those who use it. */
const allSource = /^(?:packages\/\w+\/)?src\/.*\.ts$/;
const sourceAndTests = /^(?:(?:packages\/\w+\/)?src|tests)\/.*\.ts$/;
const tests = /^tests\/.*\.ts$/;

const rules: readonly Rule[] = [
  {
    guarantee: 'an import goes to a lower room or stays in its room',
    covers: source,
    breaches: (files) => rankBreaches(files, ranks),
    breaking: [
      { 'src/base/a.ts': "import { b } from '../tokens/b.ts';" },
      { 'src/store/a.ts': "import type { B } from '../keys/b.ts';" },
      { 'src/keys/a.ts': "export { b } from '../store/b.ts';" },
      { 'src/http/proxy/a.ts': "const b = await import('../../runtime/b.ts');" },
      { 'src/tokens/a.ts': "import { b } from '../proxies/b.ts';" },
      { 'src/surprise/a.ts': '' },
    ],
    keeping: {
      'src/http/proxy/a.ts': "import { b } from '../problem.ts'; import '../../tokens/c.ts';",
      'src/runtime/process.ts': "import { readFile } from 'node:fs'; import '../http/server.ts';",
      'src/base/a.ts':
        '/* import b from "../tokens/b.ts" */ const a = `import c from "../cli/c.ts"`;',
    },
  },
  {
    guarantee: 'no folder takes part in a circle',
    covers: source,
    breaches: folderCycles,
    breaking: [
      {
        'src/tokens/a.ts': "import { b } from '../audit/b.ts';",
        'src/audit/c.ts': "import type { D } from '../tokens/d.ts';",
      },
      {
        'src/store/a.ts': "import { b } from './sqlite/b.ts';",
        'src/store/sqlite/c.ts': "import { d } from '../commit/d.ts';",
        'src/store/commit/e.ts': "import { f } from '../f.ts';",
      },
    ],
    keeping: {
      'src/tokens/a.ts': "import { b } from '../audit/b.ts'; import { c } from './c.ts';",
      'src/tokens/c.ts': "import { a } from './a.ts';",
    },
  },
  {
    guarantee: 'imports have no cycle',
    covers: allSource,
    breaches: importCycles,
    breaking: [
      { 'src/base/a.ts': "import { a } from './a.ts';" },
      {
        'src/base/a.ts': "import { b } from './b.ts';",
        'src/base/b.ts': "import type { C } from './c.ts';",
        'src/base/c.ts': "import { b } from './b.ts';",
      },
    ],
    keeping: {
      'src/base/a.ts': "import { b } from './b.ts'; import { c } from './c.ts';",
      'src/base/b.ts': "import { c } from './c.ts';",
      'src/base/c.ts': '',
    },
  },
  {
    guarantee: 'no line is too long',
    covers: sourceAndTests,
    breaches: (files) => columnBreaches(files, columnsMax),
    breaking: [{ 'src/base/a.ts': `// ${'a'.repeat(118)}` }],
    keeping: { 'src/base/b.ts': 'b'.repeat(120) },
  },
  {
    guarantee: 'names say what a thing is, not what role it plays',
    covers: allSource,
    breaches: (files) => bannedWords(files, names),
    breaking: [
      { 'src/utils/a.ts': '' },
      { 'src/tokens/helpers.ts': '' },
      { 'src/tokens/index.ts': '' },
      { 'src/tokens/a.ts': 'class TokenManager {}' },
      { 'src/tokens/a.ts': "export * from './b.ts';" },
    ],
    keeping: {
      'src/tokens/search-index.ts': 'const managers = 1; // a Manager',
      'src/tokens/indexes.ts': "const title = 'Service';",
    },
  },
  {
    guarantee: 'nothing goes round the types, the configuration or the log',
    covers: allSource,
    breaches: (files) => bannedWords(files, shortcuts),
    breaking: [
      { 'src/runtime/process.ts': "const port = process.env['PORT'];" },
      { 'src/cli/a.ts': "process.stdout.write('done');" },
      { 'src/cli/a.ts': 'process.exit(1);' },
      { 'src/audit/a.ts': 'return { ...store, commit };' },
      { 'src/audit/a.ts': 'function counting(inner: Store): Store {}' },
      { 'src/base/a.ts': 'const a = b as any;' },
      { 'src/base/a.ts': '// @ts-expect-error' },
      { 'src/base/a.ts': 'console.log(1);' },
      { 'src/base/a.ts': '// TODO: later' },
      { 'src/audit/a.ts': "db.selectFrom('logs')" },
      { 'src/api/a.ts': 'const a = Type.Object({});' },
      { 'src/base/a.ts': '/** Keep these in sync with b.ts. */' },
    ],
    keeping: {
      'src/runtime/config/config.ts': 'const { env } = process; const port = process.env.PORT;',
      'src/cli/a.ts': 'console.log(1);',
      'src/store/queries/a.ts': "db.selectFrom('logs')",
      'src/http/limits/a.ts': 'const a = Type.Object({});',
      'src/base/a.ts': "// process.env is read elsewhere\nconst mask = 'XXXX';",
    },
  },
  {
    guarantee: 'texts are in plain words and one spelling',
    covers:
      /^(?:src|bin|docs|packages)\/.*\.(?:ts|js|md)$|^(?:README|SECURITY|ARCHITECTURE|CHANGELOG)\.md$/,
    breaches: (files) => bannedWords(files, privateWords),
    breaking: [
      { 'src/base/a.ts': '/** Told of a commit. */' },
      { 'src/base/a.ts': 'const untold = 0;' },
      { 'README.md': 'Give a key, none that is public.' },
      { 'docs/a.md': 'It stands beside the token.' },
      { 'docs/a.md': 'A key that was used of late.' },
      { 'src/base/a.ts': '// It is sealed anew.' },
      { 'src/base/a.ts': "throw invalid('id', 'must not stand beside type');" },
      { 'src/base/a.ts': 'const authoriser = 1;' },
      { 'docs/a.md': 'Serialising a response.' },
    ],
    keeping: {
      'src/base/a.ts': "bestow('authorized'); // of later, renewed, serialized, stood beside",
      'docs/a.md': 'The date of lateness.',
    },
  },
  {
    guarantee: 'a proof is made only in the file that declares it',
    covers: source,
    breaches: (files) => castBreaches(files, proofs),
    breaking: [
      {
        'src/base/a.ts': "export type TokenId = Brand<string, 'TokenId'>;",
        'src/base/b.ts': 'const id = text as TokenId;',
      },
      {
        'src/base/a.ts': 'export class Secret<T> {}',
        'src/base/b.ts': 'f(x as unknown as Secret<string>);',
      },
      {
        'src/base/a.ts': 'export type Id<T> =\n  Brand<T, "Id">;',
        'src/base/b.ts': 'const ids = rows.map(f) as readonly Id[];',
      },
      {
        'src/base/a.ts': 'export type Grant = Brand<object, 1>;',
        'src/base/b.ts': 'g(new Map() as Map<Grant, 1>);',
      },
    ],
    keeping: {
      'src/base/a.ts':
        "export type TokenId = Brand<string, 'TokenId'>; const id = text as TokenId;",
      'src/base/b.ts': "import { x as TokenId } from './c.ts'; const a = b as const; // as TokenId",
      'src/base/c.ts': 'import { type Secret } from "./d.ts"; const row = read() as TokenIdentity;',
      'src/base/d.ts': 'export class Secret {} const secret = new Secret() as Secret;',
    },
  },
  {
    guarantee: 'the first line of a file says what it is, and that of a test what it protects',
    covers: /^(?:(?:packages\/\w+\/)?src\/.*|tests\/.*\.test)\.ts$/,
    breaches: headless,
    breaking: [
      { 'src/base/a.ts': 'const a = 1;' },
      { 'src/base/a.ts': '/* Not documentation. */' },
      { 'src/base/a.ts': '/** */\nconst a = 1;' },
      { 'src/base/a.ts': '\n/** Too late. */' },
    ],
    keeping: {
      'src/base/a.ts': '/** Time as a parameter. */',
      'src/base/b.ts': '/**\n * Time as a parameter.\n */',
      'src/cli/c.ts': '#!/usr/bin/env node\n/** The command line. */',
      'src/cli/d.ts': '/** `strongroom serve`: runs the server. */',
    },
  },
  {
    guarantee: 'a library is imported only where it belongs',
    covers: source,
    breaches: (files) => strayImports(files, places),
    breaking: [
      { 'src/tokens/a.ts': "import findMyWay from 'find-my-way';" },
      { 'src/tokens/a.ts': "import { sql } from 'kysely';" },
      { 'src/runtime/process.ts': "import pg from 'pg';" },
      { 'src/runtime/process.ts': "const { DatabaseSync } = await import('node:sqlite');" },
      { 'src/tokens/a.ts': "import {\n  Liquid,\n} from 'liquidjs';" },
      { 'src/tokens/a.ts': "import { hash } from 'node:crypto';" },
    ],
    keeping: {
      'src/http/proxy/a.ts': "import findMyWay from 'find-my-way';",
      'src/base/random.ts': "import { randomFillSync } from 'node:crypto';",
      'src/store/migrations/a.ts': "import { sql } from 'kysely';",
    },
  },
  {
    guarantee: 'what is exported is used by another file',
    covers: /^(?:src|tests|bench|bin|scripts)\/.*\.[jt]s$/,
    breaches: unusedExports,
    breaking: [
      { 'src/base/a.ts': 'export const b = 1; f(b);' },
      { 'src/base/a.ts': 'export function b() {}', 'src/base/c.ts': '// b' },
    ],
    keeping: {
      'src/base/a.ts': 'export async function b() {} export interface D {}',
      'src/base/c.ts': "import { b } from './a.ts';",
    },
  },
  {
    guarantee: 'nothing in src exists only for tests',
    covers: /^(?:src|bin|scripts)\/.*\.[jt]s$/,
    breaches: usedByTestsAlone,
    breaking: [{ 'src/base/a.ts': 'export const b = 1;', 'src/base/c.ts': '// b' }],
    keeping: {
      'src/base/a.ts': 'export const b = 1; export function c() { return b; }',
      'bin/d.js': 'const { c } = await import(e);',
    },
  },
  {
    guarantee: 'no test waits for time to pass',
    covers: tests,
    breaches: (files) => [...strayImports(files, timers), ...bannedWords(files, sleeps)],
    breaking: [
      { 'tests/lib/a.test.ts': "import { setTimeout } from 'node:timers/promises';" },
      { 'tests/lib/a.test.ts': 'await new Promise((done) => {\n  setTimeout(done, 100);\n});' },
    ],
    keeping: {
      'tests/support/a.ts': "import { setTimeout } from 'node:timers/promises';",
      'tests/lib/a.test.ts': 'const timer = setTimeout(() => server.close(), 100);',
    },
  },
  {
    guarantee: 'every test runs',
    covers: tests,
    breaches: (files) => bannedWords(files, omissions),
    breaking: [
      { 'tests/lib/a.test.ts': "test.only('a', () => {});" },
      { 'tests/lib/a.test.ts': 't.skip();' },
      { 'tests/lib/a.test.ts': "test('a', { skip: 'slow' }, () => {});" },
      { 'tests/lib/a.test.ts': "test('a', { todo: true });" },
    ],
    keeping: { 'tests/lib/a.test.ts': "test('.only(', () => { rows.skip = 1; });" },
  },
  {
    guarantee: 'committed text names no machine and no registry',
    covers: /\.(?:ts|js|json|md|ya?ml|toml|sh|css|html|txt)$|^[^.]*$|^\.ci\//,
    breaches: (files) => bannedWords(files, strangers),
    breaking: [
      { 'docs/a.md': `See ${'/work'}/main/src.` },
      { 'docs/a.md': `${'/root'}/.npmrc` },
      { 'docs/a.md': `"${'/home'}/alice/strongroom"` },
      { 'package-lock.json': `"tarball": "https://registry.${'npmjs'}.org/a.tgz"` },
      { 'package-lock.json': `"${'resolved'}": "file:a"` },
    ],
    keeping: {
      'docs/a.md': 'docs/work/a.md, https://example.com/root/a, /rooted, `/` is the root/home',
    },
  },
];

for (const rule of rules) {
  test(rule.guarantee, () => {
    const files = committedPaths().filter((path) => rule.covers.test(path));
    assert.deepEqual(rule.breaches(files.map(readSource)), []);
  });

  test(`${rule.guarantee}: the rule can fail`, () => {
    for (const samples of rule.breaking) {
      assert.equal(rule.breaches(filesOf(samples)).length, 1, JSON.stringify(samples));
    }
    assert.deepEqual(rule.breaches(filesOf(rule.keeping)), []);
    for (const path of [...rule.breaking, rule.keeping].flatMap((one) => Object.keys(one))) {
      assert.match(path, rule.covers);
    }
  });
}

test('every runtime dependency has its decision record and an exact version', () => {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const records = committedPaths().filter((path) => /^docs\/adr\/.*\.md$/.test(path));
  const decisions = records.map((path) => readSource(path).text).join('\n');
  assert.deepEqual(dependencyBreaches(manifest, decisions), []);
});

test('every runtime dependency has its decision record and an exact version: the rule can fail', () => {
  const kept = { dependencies: { pg: '8.0.0' }, devDependencies: { a: '1.0.0-beta.2' } };
  assert.deepEqual(dependencyBreaches(kept, 'We use `pg`.'), []);
  assert.equal(dependencyBreaches(kept, 'We use `pg-boss`.').length, 1);
  assert.equal(dependencyBreaches({ devDependencies: { a: '^1.0.0' } }, '').length, 1);
  assert.equal(dependencyBreaches({ devDependencies: { a: '~1.0.0' } }, '').length, 1);
});

function filesOf(samples: Samples): SourceFile[] {
  return Object.entries(samples).map(([path, text]) => sourceFile(path, text));
}

/** Every block of code in the documents has the form of its language, and names only commands and routes that exist. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { transformSync } from 'esbuild';
import { commands } from '../src/cli/commands.ts';
import { select } from '../src/cli/select.ts';
import type { Terminal } from '../src/cli/terminal/terminal.ts';
import {
  type CodeBlock,
  codeBlocksOf,
  curlRequestsIn,
  programWordsIn,
} from './support/code-blocks.ts';
import { committedPaths, root } from './support/source.ts';

const read = (path: string) => readFileSync(join(root, path), 'utf8');
const blocks = committedPaths()
  .filter((path) => path.endsWith('.md') && !/^(?:docs\/adr\/|CHANGELOG)/.test(path))
  .flatMap((path) => codeBlocksOf(path, read(path)));
const of = (...languages: readonly string[]) =>
  blocks.filter(({ language }) => languages.includes(language));
const failures = (from: readonly CodeBlock[], flawOf: (code: string) => string | undefined) =>
  from.flatMap(({ place, code }) => flawOf(code)?.replace(/^/, `${place}: `) ?? []);

test('every block says its language', () => {
  const checked = ['sh', 'json', 'ts', 'typescript', 'js', 'python'];
  const shown = [
    'text',
    'html',
    'css',
    'ini',
    'yaml',
    'nginx',
    'haproxy',
    'sql',
    'csv',
    'tsx',
    'vue',
  ];
  const known = [...checked, ...shown];
  assert.deepEqual(
    blocks.filter(({ language }) => !known.includes(language)).map(({ place }) => place),
    [],
  );
  assert.ok(blocks.length > 150);
});

test('JSON is JSON, and shortened responses are text', () => {
  const flaws = failures(of('json'), (code) => {
    try {
      JSON.parse(code);
      return undefined;
    } catch (error) {
      return String(error);
    }
  });
  assert.deepEqual(flaws, []);
});

test('TypeScript, JavaScript and Python compile', () => {
  const flaws = failures(of('ts', 'typescript', 'js'), (code) => {
    try {
      // What a client's example awaits stands in a function when it runs.
      transformSync(/^import /m.test(code) ? code : `async () => {${code}\n}`, { loader: 'ts' });
      return undefined;
    } catch (error) {
      return String(error);
    }
  });
  assert.deepEqual(flaws, []);
  const python = failures(of('python'), (code) => {
    const compile = ['-c', 'import ast, sys; ast.parse(sys.stdin.read())'];
    const { error, status, stderr } = spawnSync('python3', compile, { input: code });
    return error || status === 0 ? undefined : String(stderr);
  });
  assert.deepEqual(python, []);
});

test('shell commands have the grammar of a shell', () => {
  const flaws = failures(of('sh'), (code) => {
    const { status, stderr } = spawnSync('bash', ['-n'], { input: code });
    return status === 0 ? undefined : String(stderr);
  });
  assert.deepEqual(flaws, []);
});

test('commands of the program exist, with their options', async () => {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const terminal = { stdout: nowhere, stderr: nowhere } as unknown as Terminal;
  const flaws: string[] = [];
  let seen = 0;
  for (const { place, code } of of('sh')) {
    for (const words of programWordsIn(code)) {
      seen += 1;
      try {
        await select(commands, words, terminal);
      } catch (error) {
        flaws.push(`${place}: strongroom ${words.join(' ')}: ${error}`);
      }
    }
  }
  assert.deepEqual(flaws, []);
  assert.ok(seen > 60, String(seen));
});

test('requests of curl go to routes that exist', () => {
  const { paths } = JSON.parse(read('docs/openapi.json')) as { paths: Record<string, object> };
  const routes = Object.entries(paths).map(([path, methods]) => ({
    form: new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}$`),
    methods: Object.keys(methods).map((method) => method.toUpperCase()),
  }));
  const isRoute = (method: string, path: string) =>
    /^\/(?:proxy|console)(?:\/|$)/.test(path) ||
    routes.some((route) => route.form.test(path) && route.methods.includes(method));
  const requests = of('sh').flatMap(({ place, code }) =>
    curlRequestsIn(code).map((request) => ({ place, ...request })),
  );
  assert.deepEqual(
    requests.filter(({ method, path }) => !isRoute(method, path)),
    [],
  );
  assert.ok(requests.length > 40, String(requests.length));
});

test('the rules can fail', () => {
  const commandLines = [
    'npx strongroom token list --typ card | head',
    'curl -X PUT "$URL/tokens/$ID?a=b"',
  ];
  const lines = ['```sh', ...commandLines, '```'].map((line) => `   ${line}\n`);
  const text = `A step:\n\n${lines.join('')}`;
  const [block] = codeBlocksOf('docs/a.md', text);
  assert.deepEqual([block?.place, block?.language], ['docs/a.md:3', 'sh']);
  assert.deepEqual(programWordsIn(block?.code ?? ''), [['token', 'list', '--typ', 'card']]);
  assert.deepEqual(curlRequestsIn(block?.code ?? ''), [{ method: 'PUT', path: '/tokens/$ID' }]);
});

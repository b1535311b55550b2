/** Every block of code in the documents has the form of its language, and names only commands and routes that exist. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { type Loader, transformSync } from 'esbuild';
import { compileScript, parse } from 'vue/compiler-sfc';
import { commands } from '../src/cli/commands.ts';
import { select } from '../src/cli/select.ts';
import type { Terminal } from '../src/cli/terminal/terminal.ts';
import {
  type CodeBlock,
  codeBlocksOf,
  curlRequestsIn,
  programWordsIn,
} from './support/code-blocks.ts';
import { installed, reasonWithout } from './support/development-packages.ts';
import { committedPaths, root } from './support/source.ts';

const read = (path: string) => readFileSync(join(root, path), 'utf8');
const blocks = committedPaths()
  .filter((path) => path.endsWith('.md') && !/^(?:docs\/adr\/|CHANGELOG)/.test(path))
  .flatMap((path) => codeBlocksOf(path, read(path)));
const of = (...languages: readonly string[]) =>
  blocks.filter(({ language }) => languages.includes(language));
const failures = (from: readonly CodeBlock[], flawOf: (code: string) => string | undefined) =>
  from.flatMap(({ place, code }) => flawOf(code)?.replace(/^/, `${place}: `) ?? []);

function thrownBy(run: () => unknown): string | undefined {
  try {
    run();
    return undefined;
  } catch (error) {
    return String(error);
  }
}

/** Warnings count: what esbuild doubts in CSS, a browser drops. */
const flawOf = (code: string, loader: Loader, isClassic = false) =>
  thrownBy(() => {
    const format = isClassic ? { format: 'cjs' as const } : {};
    const { warnings } = transformSync(code, { loader, logLevel: 'silent', ...format });
    for (const { text } of warnings) throw new Error(text);
  });

const flawOfComponent = (code: string) =>
  thrownBy(() => {
    const { descriptor, errors } = parse(code);
    for (const error of errors) throw error;
    compileScript(descriptor, { id: 'block' });
  });

function flawOfHtml(code: string): string | undefined {
  const [error] = parse(`<template>${code}</template>`).errors;
  if (error) return error.message;
  const scripts = code.matchAll(/<script([^>]*)>(.*?)<\/script>/gs);
  return [...scripts]
    .map(([, attributes = '', script = '']) =>
      // A script that is no module has no await at its top level.
      flawOf(script, 'js', !attributes.includes('type="module"')),
    )
    .find((flaw) => flaw !== undefined);
}

const flawOfSettings = (code: string) =>
  code
    .split('\n')
    .find((line) => line.trim() !== '' && !/^(?:\[\w+\]|\w+ ?= ?\S.*|[#;].*)$/.test(line));

test('every block says its language, and one that is not parsed says why', () => {
  const parsed = ['sh', 'json', 'yaml', 'ini', 'ts', 'typescript', 'js', 'tsx', 'vue', 'python'];
  const markup = ['html', 'css'];
  const reasons = {
    text: 'output of a program, or a layout: no language',
    nginx: 'nginx itself runs it: tests/packaging/cells.test.ts',
  };
  const known = [...parsed, ...markup, ...Object.keys(reasons)];
  assert.deepEqual(
    blocks.filter(({ language }) => !known.includes(language)).map(({ place }) => place),
    [],
  );
  // Another one has to be run there as well.
  assert.deepEqual(
    of('nginx').map(({ place }) => place.replace(/:\d+$/, '')),
    ['docs/move.md'],
  );
  assert.ok(blocks.length > 150);
});

test('JSON is JSON, and shortened responses are text', () => {
  const flaws = failures(of('json'), (code) => thrownBy(() => JSON.parse(code)));
  assert.deepEqual(flaws, []);
});

test('TypeScript, JavaScript and Python compile', () => {
  const flaws = failures(of('ts', 'typescript', 'js'), (code) =>
    // What a client's example awaits stands in a function when it runs.
    flawOf(/^import /m.test(code) ? code : `async () => {${code}\n}`, 'ts'),
  );
  assert.deepEqual(flaws, []);
  const python = failures(of('python'), (code) => {
    const compile = ['-c', 'import ast, sys; ast.parse(sys.stdin.read())'];
    const { error, status, stderr } = spawnSync('python3', compile, { input: code });
    return error || status === 0 ? undefined : String(stderr);
  });
  assert.deepEqual(python, []);
});

test('CSS, JSX and components of Vue compile', () => {
  const flaws = [
    ...failures(of('css'), (code) => flawOf(code, 'css')),
    ...failures(of('tsx'), (code) => flawOf(code, 'tsx')),
    ...failures(of('vue'), flawOfComponent),
  ];
  assert.deepEqual(flaws, []);
  assert.match(flawOf('a { color: red', 'css') ?? '', /Expected "}"/);
  assert.match(flawOf('const a = <p>;', 'tsx') ?? '', /./);
  assert.match(flawOfComponent('<script setup>const a = ;</script>') ?? '', /./);
});

test('HTML closes its elements, and its scripts compile as the browser reads them', () => {
  assert.deepEqual(failures(of('html'), flawOfHtml), []);
  assert.match(flawOfHtml('<p>a <b>c</p>') ?? '', /missing end tag/);
  assert.match(flawOfHtml('<script>\nawait a();\n</script>') ?? '', /await/);
  assert.equal(flawOfHtml('<script type="module">\nawait a();\n</script>'), undefined);
});

test('YAML and settings of systemd and PgBouncer parse', async (t) => {
  assert.deepEqual(failures(of('ini'), flawOfSettings), []);
  assert.match(flawOfSettings('[Service]\nLimitCORE') ?? '', /LimitCORE/);
  const name = '@redocly/openapi-core';
  const redocly = await installed(name);
  if (reasonWithout({ [name]: redocly })) return t.diagnostic('YAML is not parsed');
  const flawOfYaml = (code: string) => thrownBy(() => redocly.parseYaml(code));
  assert.deepEqual(failures(of('yaml'), flawOfYaml), []);
  assert.match(flawOfYaml('a: [b') ?? '', /./);
});

test('shell commands have the grammar of a shell', () => {
  const flaws = failures(of('sh'), (code) => {
    const { status, stderr } = spawnSync('bash', ['-n'], { input: code });
    return status === 0 ? undefined : String(stderr);
  });
  assert.deepEqual(flaws, []);
});

const secretFile = String.raw`(?:secrets/)?\b(?:root\.key|management\.key|database-url|database-password)\b`;

/** The first command that leaves a secret where other users, or those who come later, can read it. */
function leftSecretIn(code: string): string | undefined {
  const lines = code.replace(/\\\n\s*/g, ' ').split('\n');
  const isWritten = new RegExp(`openssl rand.*>|> ?${secretFile}`);
  const handedOver = new RegExp(
    `(?:\\binstall -m .*? |--from-file=(?:[\\w-]+=)?)(${secretFile})`,
    'g',
  );
  const writes = lines.findIndex((line) => isWritten.test(line));
  const guard = lines.findIndex((line) => line.includes('umask 077'));
  if (writes !== -1 && (guard === -1 || guard > writes)) return lines[writes];
  const isRemoved = (name: string) => new RegExp(`\\brm [^#]*\\b${name}`).test(code);
  return lines.find((line) =>
    [...line.matchAll(handedOver)].some(([, name = '']) => !isRemoved(name)),
  );
}

test('commands leave no secret that other users of the machine can read', () => {
  assert.deepEqual(failures(of('sh'), leftSecretIn), []);
  const written = of('sh').filter(({ code }) => /openssl rand/.test(code));
  assert.ok(written.length >= 4, String(written.length));
  const ignored = read('.gitignore').split('\n');
  for (const name of ['/secrets/', '/root.key', '/management.key', '/database-url']) {
    assert.ok(ignored.includes(name), name);
  }
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
  const handed = 'install -m 0400 root.key /etc/root.key';
  assert.equal(leftSecretIn(handed), handed);
  assert.equal(leftSecretIn(`${handed}\nrm root.key`), undefined);
  assert.match(leftSecretIn('umask 077\nkubectl --from-file=a=management.key') ?? '', /^kubectl/);
  assert.match(leftSecretIn('printf x > database-url\numask 077') ?? '', /^printf/);
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

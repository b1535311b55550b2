/** `strongroom reactor run`: code on a developer's machine, in the same sandbox and with the same limits. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { after } from 'node:test';
import { runCommand } from '../support/process.ts';

const folder = mkdtempSync(join(tmpdir(), 'reactor-'));
after(() => rmSync(folder, { recursive: true }));

function run(code: string, ...flags: string[]) {
  const file = join(folder, 'code.js');
  writeFileSync(file, code);
  return runCommand(['reactor', 'run', file, ...flags], {});
}

test('the result is on standard output, the log on standard error', async () => {
  const code =
    "module.exports = async (req) => { console.warn('a', req.configuration.B); return { raw: req.args } }";
  const {
    code: exit,
    stdout,
    stderr,
  } = await run(code, '--args', '{"x":1}', '--configuration', '{"B":"c"}');
  assert.deepEqual([exit, JSON.parse(stdout), stderr], [0, { raw: { x: 1 } }, 'warn a c\n']);
});

test('the newer contract gets an event', async () => {
  const code =
    'module.exports = async (event) => { event.logger.info(1); return { res: { body: event.req } } }';
  const { stdout, stderr } = await run(code, '--image', 'node22', '--args', '{"x":1}');
  assert.deepEqual([JSON.parse(stdout), stderr], [{ res: { body: { x: 1 } } }, 'info 1\n']);
});

const failures: Readonly<
  Record<string, readonly [code: string, stderr: RegExp, ...flags: string[]]>
> = {
  'code that is refused': ["module.exports = () => require('fs')", /the code requires "fs"/],
  'an error in its second line': [
    'module.exports = () => {\n  throw new Error();\n}',
    /the code threw an error at line 2, column \d+: /,
  ],
  'code that does not compile': ['module.exports = () => { x y }', /\(line 1, column 28\)/],
  'an error': [
    "module.exports = () => { throw new (require('strongroom/errors').BadRequestError)('why') }",
    /BadRequestError.*"status":400.*why/,
  ],
  'a limit': ['module.exports = () => { for (;;); }', /the code ended: timeout/, '--timeout', '1'],
  'a request': ["module.exports = () => fetch('https://a.example')", /There is no vault here/],
};

for (const [name, [code, stderr, ...flags]] of Object.entries(failures)) {
  test(`${name} is on standard error, and the exit code is 1`, async () => {
    const result = await run(code, ...flags);
    assert.deepEqual([result.code, result.stdout], [1, '']);
    assert.match(result.stderr, stderr);
  });
}

test('a command line that is wrong is explained without what it holds', async () => {
  const code = 'module.exports = () => 1';
  for (const [name, value] of [
    ['args', '4242424242424242'],
    ['args', '{'],
    ['configuration', '[]'],
    ['image', 'secret'],
    ['timeout', '0'],
    ['timeout', '901'],
  ] as const) {
    const result = await run(code, `--${name}`, value);
    assert.equal(result.code, 2, name);
    assert.match(result.stderr, new RegExp(`--${name} must be`));
    assert.doesNotMatch(result.stderr, /4242|secret/);
  }
  const large = JSON.stringify({ a: 'x'.repeat(100_000) });
  assert.equal((await run(code, '--args', large)).code, 0);
});

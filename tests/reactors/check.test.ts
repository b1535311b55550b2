/** Code that is about to be stored: what is wrong with it is named. */
import assert from 'node:assert/strict';
import test, { after } from 'node:test';
import * as limits from '../../src/reactors/sandbox/limits.ts';
import { requiredModules } from '../../src/reactors/sandbox/required-modules.ts';
import { openTestSandbox } from '../support/sandboxes.ts';

const sandbox = openTestSandbox();
after(() => sandbox.close());

const check = (code: string, modules = new Map<string, string>()) =>
  sandbox.check({ tenant: 'tenant', code, modules });

test('code that exports a function, sync or async or as default, has no problem', async () => {
  for (const code of [
    'module.exports = function (req) { return { raw: req.args } }',
    'module.exports = async () => {}',
    'exports.default = async function () {}',
    "const c = require('node:crypto'); const e = require('strongroom/errors'); module.exports = () => c && e",
  ]) {
    assert.equal(await check(code), undefined);
  }
});

const wrong: Readonly<Record<string, readonly [code: string, kind: string, message: RegExp]>> = {
  'does not compile': [
    "\n\nmodule.exports = 'secret",
    'does not compile',
    /^does not compile \(line 3, column \d+\)$/,
  ],
  'exports nothing': ['1', 'exports no function', /must export a function/],
  'exports a class instance': [
    'module.exports = {}',
    'exports no function',
    /must export a function/,
  ],
  'requires a file system': ["const a = () => require('fs'); module.exports = a", 'module', /"fs"/],
  'requires a package': ['const x = require("axios"); module.exports = x', 'module', /"axios"/],
  'imports a package': ['module.exports = () => import("left-pad")', 'module', /"left-pad"/],
  'requires what it computes': ['require("f" + "s"); module.exports = () => 1', 'module', /"fs"/],
  'throws when it is loaded': [
    "throw new Error('secret')",
    'fails',
    /^throws an error when it is loaded/,
  ],
  'never ends when it is loaded': ['for (;;);', 'fails', /takes more than/],
  'takes all memory when it is loaded': [
    'const a = []; for (;;) a.push(new Uint8Array(1e6))',
    'fails',
    /memory/,
  ],
};

for (const [name, [code, kind, message]] of Object.entries(wrong)) {
  test(`code that ${name} is refused, and nothing of it is quoted`, async () => {
    const problem = await check(code);
    assert.equal(problem?.kind, kind);
    assert.match(problem?.message ?? '', message);
    assert.doesNotMatch(problem?.message ?? '', /secret/);
  });
}

test('a module of the operator is there', async () => {
  const code = "const { a } = require('bundle'); module.exports = a";
  const modules = new Map([['bundle', 'exports.a = () => 1']]);
  assert.equal(await check(code, modules), undefined);
  assert.equal((await check(code))?.kind, 'module');
});

test('code may have as many characters as the limit, and no more', async () => {
  const code = 'module.exports = () => 1;';
  assert.equal(await check(code.padEnd(limits.codeLengthMax)), undefined);
  assert.equal((await check(code.padEnd(limits.codeLengthMax + 1)))?.kind, 'too long');
});

test('names are found in calls, not in comments, texts or longer words', () => {
  const code = `// require('a')
    /* require('b') */ const t = "require('c')", u = \`require('d')\`;
    myrequire('e'); o.require('f'); require ( "g" ); import('h'); require(name); require("i" + x);`;
  assert.deepEqual(requiredModules(code), ['g', 'h']);
});

test('names are found in linear time', () => {
  for (const piece of ['/*', '`\\', "'\\", 'require(', "require('", '"', '/']) {
    const code = piece.repeat(limits.codeLengthMax / piece.length);
    assert.deepEqual(requiredModules(code), []);
  }
});

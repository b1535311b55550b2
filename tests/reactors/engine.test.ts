/** What the child process expects of an engine: the same of the one it uses and of the second choice. */
import assert from 'node:assert/strict';
import test from 'node:test';
import {
  type Engine,
  EngineError,
  type OpenEngine,
} from '../../src/reactors/sandbox/child/engine.ts';
import { prelude } from '../../src/reactors/sandbox/child/prelude.ts';
import { openQuickJsWasi } from '../../src/reactors/sandbox/child/quickjs-wasi.ts';
import { openQuickJsEmscripten } from '../support/second-engine.ts';

const engines: Readonly<Record<string, OpenEngine>> = {
  'quickjs-wasi': openQuickJsWasi,
  'quickjs-emscripten-core': openQuickJsEmscripten,
};

const limits = {
  memoryBytesMax: 16 * 1024 * 1024,
  stackBytesMax: 128 * 1024,
  textLengthMax: 1024 * 1024,
};

/** Evaluates what it gets, and sends what that gives. */
const evaluating = `(function () {
  const ask = host;
  return (kind, text) => { ask(kind, String((0, eval)(text))); };
})()`;

for (const [name, open] of Object.entries(engines)) {
  async function image(options: { prelude?: string; mustStop?: () => boolean } = {}) {
    return open({ prelude: evaluating, mustStop: () => false, ...limits, ...options });
  }

  async function started(options: { mustStop?: () => boolean } = {}) {
    const heard: (string | undefined)[][] = [];
    const engine = await (await image(options)).start((operation, text) => {
      heard.push([operation, text]);
      return '+';
    });
    return { engine, heard };
  }

  test(`${name}: texts cross in both directions, with any character`, async () => {
    const { engine, heard } = await started();
    engine.enter('a', `'é\\n\\u{1f600}"' + "é\u{1f600}"`);
    assert.deepEqual(heard, [['a', 'é\n\u{1f600}"é\u{1f600}']]);
  });

  test(`${name}: the host is handed no text that is longer than it takes`, async () => {
    const { engine, heard } = await started();
    engine.enter('exact', '"é".repeat(1024 * 1024)');
    engine.enter('more', '"x".repeat(1024 * 1024 + 1)');
    assert.deepEqual(
      heard.map(([operation, text]) => [operation, text?.length]),
      [
        ['exact', 1024 * 1024],
        ['more', undefined],
      ],
    );
  });

  test(`${name}: an engine has nothing of the one before`, async () => {
    const made = await image();
    const heard: (string | undefined)[] = [];
    const host = (_operation: string, text: string | undefined) => {
      heard.push(text);
      return '+';
    };
    const first = await made.start(host);
    first.enter('', 'globalThis.x = 1; Object.prototype.y = 2; Array.prototype.map = 3; x');
    first.end();
    const second = await made.start(host);
    second.enter('', '[typeof x, typeof ({}).y, typeof [].map].join()');
    assert.deepEqual(heard, ['1', 'undefined,undefined,function']);
  });

  test(`${name}: jobs of promises run before enter returns`, async () => {
    const { engine, heard } = await started();
    engine.enter('', 'Promise.resolve(1).then((one) => host("later", String(one))); 0');
    assert.deepEqual(heard.at(-1), ['later', '1']);
  });

  test(`${name}: what is thrown ends the call, not the process`, async () => {
    const { engine } = await started();
    assert.throws(() => engine.enter('', 'throw new Error("x")'), EngineError);
  });

  test(`${name}: memory has a limit`, async () => {
    const { engine } = await started();
    const bomb = 'const a = []; for (;;) a.push(new Uint8Array(1e5))';
    assert.throws(() => engine.enter('', bomb), { reason: 'memory' });
  });

  test(`${name}: recursion without end is an error inside the engine`, async () => {
    const { engine, heard } = await started();
    engine.enter('', '(() => { const f = () => f(); try { f() } catch { return "caught" } })()');
    assert.deepEqual(heard, [['', 'caught']]);
  });

  test(`${name}: code can be stopped between its instructions`, async () => {
    let asked = 0;
    const mustStop = () => {
      asked += 1;
      return asked > 10;
    };
    const { engine } = await started({ mustStop });
    assert.throws(() => engine.enter('', 'for (;;);'), EngineError);
  });

  test(`${name}: the host is asked with texts only`, async () => {
    const { engine, heard } = await started();
    engine.enter('', 'try { host({ toString() { throw 1 } }, 2) } catch {} "end"');
    assert.deepEqual(heard.at(-1), ['', 'end']);
  });

  test(`${name}: a call runs in the prelude, and says what it returned`, async () => {
    const answers: (string | undefined)[][] = [];
    const engine: Engine = await (await image({ prelude })).start((operation, text) => {
      answers.push([operation, text]);
      return '+';
    });
    const code = 'module.exports = async (req) => ({ raw: req.args.a + 1 })';
    const call = { contract: 'node-bt', bt: false, code, input: { args: { a: 1 } } };
    engine.enter('call', JSON.stringify({ ...call, isCheck: false, moduleNames: [] }));
    assert.deepEqual(answers, [['done', '{"value":{"raw":2}}']]);
  });
}

test('quickjs-wasi: a text may contain a zero', async () => {
  const heard: (string | undefined)[] = [];
  const made = await openQuickJsWasi({ prelude: evaluating, mustStop: () => false, ...limits });
  const engine = await made.start((_operation, text) => {
    heard.push(text);
    return '+';
  });
  engine.enter('', '"a\\u0000b"');
  engine.enter('', '"a\u0000b"');
  assert.deepEqual(heard, ['a\u0000b', 'a\u0000b']);
});

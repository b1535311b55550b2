/** Programs that attack the sandbox, and how each must end. */

export interface HostileProgram {
  readonly name: string;
  /** The body of the function that is called, with `req`; or a whole module, if it says so. */
  readonly code: string;
  /** The kinds or reasons that are right. */
  readonly ends: readonly string[];
  /** What a program that returns must have found. */
  readonly value?: unknown;
}

const forever = ['timeout'];
const bounded = ['memory', 'timeout', 'threw', 'crashed'];

function loops(codes: Readonly<Record<string, string>>): readonly HostileProgram[] {
  return Object.entries(codes).map(([name, code]) => ({ name, code, ends: forever }));
}

/** They are over by themselves, or in time. */
function bombs(codes: Readonly<Record<string, string>>): readonly HostileProgram[] {
  return Object.entries(codes).map(([name, code]) => ({ name, code, ends: bounded }));
}

function finds(
  codes: Readonly<Record<string, readonly [string, unknown]>>,
): readonly HostileProgram[] {
  return Object.entries(codes).map(([name, [code, value]]) => ({
    name,
    code,
    ends: ['returned'],
    value,
  }));
}

export const endless: readonly HostileProgram[] = [
  ...loops({
    'a loop without end': 'for (;;);',
    'a loop that catches what stops it': 'for (;;) try { for (;;); } catch {} finally { continue }',
    'a search in a long text': 'for (;;) "a".repeat(1 << 24).indexOf("b")',
    'JSON.parse in a loop': 'const t = JSON.stringify(Array(1e5).fill(1)); for (;;) JSON.parse(t)',
    'JSON.parse with a reviver that never ends': 'JSON.parse("[1]", () => { for (;;); })',
    'a comparison in sort that never ends': '[2, 1].sort(() => { for (;;); })',
    'a sort of many': 'for (;;) Array.from({ length: 1e6 }, (_n, i) => -i).sort()',
    'a regular expression that backtracks': '/^(a+)+$/.test("a".repeat(40) + "b")',
    'a pattern of alternatives': '/(?:a|a|a|a|a)*b/.test("a".repeat(40))',
    'a power of large integers': 'let x = 3n; for (;;) x = x ** 2n % (2n ** 200000n)',
    'digits of a large integer': 'for (;;) (7n ** 300000n).toString()',
    'a getter of the result that never ends': 'return { get a() { for (;;); } }',
    'a toJSON that never ends': 'return { toJSON() { for (;;); } }',
    'a proxy as the result whose trap never ends':
      'return new Proxy({}, { ownKeys() { for (;;); } })',
    'a then that never ends': 'return { then() { for (;;); } }',
    'microtasks that follow each other': 'const f = () => Promise.resolve().then(f); return f()',
    'an error whose message never ends': 'throw new Proxy(new Error(), { get() { for (;;); } })',
    'a name of an error that never ends':
      'const e = new Error(); Object.defineProperty(e, "name", { get() { for (;;); } }); throw e',
    'a generator without end': 'return [...(function* () { for (;;) yield; })()].length && 1; ',
    'a timer that never comes': 'return new Promise((done) => setTimeout(done, 1e9))',
    'timers that follow each other':
      'const f = () => setTimeout(f, 1); f(); return new Promise((d) => setTimeout(d, 1e9))',
    'a loop when the module loads': 'MODULE for (;;);',
    'a replacement in a long text': 'for (;;) "a".repeat(1 << 22).replaceAll("a", "b")',
    'a loop of typed arrays': 'const a = new Uint8Array(1 << 24); for (;;) a.sort()',
    'key derivation without end':
      'require("crypto").pbkdf2Sync("a", "b", 2 ** 31 - 1, 64, "sha512")',
  }).map((program) =>
    /generator|sort of many|microtasks/.test(program.name)
      ? { ...program, ends: bounded }
      : program,
  ),
];

export const bombsAndFloods: readonly HostileProgram[] = [
  ...bombs({
    'texts without end': 'const a = []; for (;;) a.push("x".repeat(1e5) + a.length)',
    'a text that doubles': 'let s = "x"; for (;;) s += s',
    'a large buffer': 'return new ArrayBuffer(2 ** 31)',
    'shared memory': 'const a = []; for (;;) a.push(new SharedArrayBuffer(1e6))',
    'many buffers': 'const a = []; for (;;) a.push(new Uint8Array(1e6))',
    'nested arrays without end': 'let a = []; for (;;) a = [a]',
    recursion: 'const f = () => f() + 1; return f()',
    'recursion through a getter': 'const o = { get a() { return o.a } }; return o.a',
    'recursion through a proxy': 'const p = new Proxy({}, { get: (t, k, r) => r[k] }); return p.a',
    'a pattern of many groups': 'return new RegExp("(".repeat(1e5) + ")".repeat(1e5))',
    'deep JSON': 'return JSON.parse("[".repeat(1e6) + "]".repeat(1e6))',
    'a deep expression': 'return eval("(".repeat(1e5) + "1" + ")".repeat(1e5))',
    'a map without end': 'const m = new Map(); for (let i = 0; ; i += 1) m.set(i, {})',
    'promises without end': 'const a = []; for (;;) a.push(new Promise(() => {}))',
    'memory from an extension of a buffer':
      'const b = Buffer.alloc(6e7); return Buffer.concat([b, b]).length',
    'key derivation with much memory':
      'return require("crypto").scryptSync("a", "b", 64, { N: 2 ** 22, r: 32, maxmem: 2 ** 40 })',
    'key derivation with as much memory as OpenSSL permits':
      'return require("crypto").scryptSync("a", "b", 64, { N: 2 ** 18, r: 15, maxmem: 2 ** 40 })',
    'key derivation with a large block':
      'return require("crypto").scryptSync("a", "b", 64, { N: 2, r: 2 ** 20, maxmem: 2 ** 40 })',
    'key derivation in parallel':
      'return require("crypto").scryptSync("a", "b", 64, { N: 2, r: 8, p: 2 ** 18, maxmem: 2 ** 40 })',
    'a derived key without end':
      'return require("crypto").pbkdf2Sync("a", "b", 1, 2 ** 30, "sha512")',
    'a text for the host that is almost all memory':
      'return require("crypto").createHash("sha256").update("x".repeat(2e7)).digest("hex")',
    'an encoding of almost all memory':
      'return new TextDecoder().decode(new Uint8Array(3e7)).length',
    'a large key': 'return require("crypto").createSecretKey(Buffer.alloc(6e7)).export().length',
    'random bytes without end': 'return require("crypto").randomBytes(2 ** 31)',
  }),
  {
    name: 'a result of a million levels',
    code: 'let a = []; for (let i = 0; i < 1e6; i += 1) a = [a]; return a',
    ends: ['memory', 'result not JSON', 'timeout'],
  },
  {
    name: 'a result of a hundred levels',
    code: 'let a = []; for (let i = 0; i < 100; i += 1) a = [a]; return a',
    ends: ['result not JSON'],
  },
  {
    name: 'a result that is too large',
    code: 'return "x".repeat(2 ** 21)',
    ends: ['result too large'],
  },
  {
    name: 'a result that grows when it is written',
    code: 'return { toJSON: () => "x".repeat(2 ** 24) }',
    ends: ['result too large', 'timeout'],
  },
  {
    name: 'a result in a circle',
    code: 'const a = {}; a.a = a; return a',
    ends: ['result not JSON'],
  },
  { name: 'a result that is no JSON', code: 'return 1n', ends: ['result not JSON'] },
  {
    name: 'a flood of the log',
    code: 'for (;;) console.log("x".repeat(8000))',
    ends: ['crashed', 'timeout'],
  },
  {
    name: 'a flood of empty lines',
    code: 'for (let i = 0; i < 5000; i += 1) console.log(""); return 1',
    ends: ['returned'],
    value: 1,
  },
  {
    name: 'a line that is too long',
    code: 'console.log("x".repeat(1e7)); return 1',
    ends: ['returned'],
    value: 1,
  },
  {
    name: 'a flood of requests',
    code: `const all = []; for (let i = 0; i < 1e4;
      i += 1) all.push(fetch("https://a.example").catch((e) => 1)); return (await Promise.all(all)).length`,
    ends: ['returned', 'timeout'],
    value: 10_000,
  },
  {
    name: 'a request that is too large',
    code: 'return fetch("https://a.example", { method: "POST", body: "x".repeat(3e6) }).catch(() => "refused")',
    ends: ['returned'],
    value: 'refused',
  },
  {
    name: 'an error with an endless text',
    code: 'throw new Error("x".repeat(1e7))',
    ends: ['threw'],
  },
  {
    name: 'an error with a million properties',
    code: `const { BadRequestError } = require("strongroom/errors");
      throw new BadRequestError(Object.fromEntries(Array.from({ length: 1e5 }, (_n, i) => [i, i])))`,
    // On a busy machine its second is over before they are made.
    ends: ['threw', 'timeout'],
  },
  { name: 'a promise that nothing settles', code: 'return new Promise(() => {})', ends: ['threw'] },
  {
    name: 'work after the result',
    code: 'Promise.resolve().then(function f() { return Promise.resolve().then(f) }); return 1',
    ends: ['returned', 'timeout'],
    value: 1,
  },
  {
    name: 'requests after the result',
    code: 'setTimeout(() => fetch("https://late.example"), 1); return 1',
    ends: ['returned'],
    value: 1,
  },
  { name: 'undefined as the error', code: 'throw undefined', ends: ['threw'] },
  {
    name: 'an error whose texts are other things',
    code: 'const e = new Error(); Object.defineProperty(e, "message", { get() { throw e } }); throw e',
    ends: ['threw'],
  },
];

export const escapes: readonly HostileProgram[] = finds({
  'no globals of Node': [
    `return [typeof process, typeof require("crypto").getFips, typeof WebAssembly, typeof Worker,
      typeof Deno, typeof XMLHttpRequest, typeof WebSocket, typeof Atomics, typeof gc]`,
    Array.from({ length: 9 }, () => 'undefined'),
  ],
  'a chain of constructors ends in the engine': [
    `const f = (x) => x.constructor.constructor("return typeof process + typeof require + typeof host")();
      return [f(req), f(fetch), f(console.log), f(require), f(Buffer), f(req.args)]`,
    Array.from({ length: 6 }, () => 'undefinedundefinedundefined'),
  ],
  'no files, children, sockets or environment by require': [
    `return ["fs", "child_process", "net", "http", "os", "vm", "worker_threads", "process", "module",
      "dns", "node:fs", "../child/main.js", "/etc/passwd", "__proto__", "constructor",
      "strongroom"].filter((name) => { try { require(name); return true } catch { return false } })`,
    [],
  ],
  'no modules by import': [
    `const load = (name) => eval("import(" + JSON.stringify(name) + ")").then(() => true, () => false);
      return Promise.all(["fs", "/proc/self/environ", "data:text/javascript,1", "node:fs",
      "prelude"].map(load))`,
    [false, false, false, false, false],
  ],
  'process.binding and its like are not there': [
    `return [typeof globalThis.process?.binding, typeof globalThis._linkedBinding,
      typeof globalThis.internalBinding, typeof std, typeof os, typeof scriptArgs, typeof print]`,
    Array.from({ length: 7 }, () => 'undefined'),
  ],
  'the host cannot be called directly': [
    `return [typeof host,
      Object.getOwnPropertyNames(globalThis).filter((name) => /^(?:host|entry|prelude|ask)/i.test(name))]`,
    ['undefined', []],
  ],
  'stacks name nothing of this machine': [
    'try { null.x } catch (e) { return /file:|node_modules|\\/src\\//.test(e.stack) }',
    false,
  ],
  'the stack of an error of the host names nothing of this machine': [
    `
      try { require("crypto").createHash("nonsense").update("").digest() } catch (e) {
        return /file:|node:|node_modules|\\/src\\//.test(e.stack + e.message) }`,
    false,
  ],
  'no caller can be reached': [
    'function f() { return f.caller } try { return f() === null || f() === undefined } catch { return true }',
    true,
  ],
  'no prepareStackTrace hands out frames': [
    `let got = 0; Error.prepareStackTrace = (_e,
      frames) => { got = frames?.map?.((f) => f.getFunction?.()).filter(Boolean).length ?? 0; return "" };
      try { null.x } catch (e) { void e.stack } return got`,
    0,
  ],
  'pollution of all prototypes changes nothing outside': [
    `for (const c of [Object, Array, Function, String, Number, Promise, Map, RegExp,
      Error]) for (const k of ["then", "toJSON", "value", "error", "ended", "kind", "status",
      "isCheck"]) try { Object.defineProperty(c.prototype, k, { value: undefined, writable: true,
      configurable: true }) } catch {} return 1`,
    1,
  ],
  'replaced intrinsics do not reach the result': [
    `JSON.stringify = () => "{}"; JSON.parse = () => ({}); Promise.prototype.then = () => 1;
      Array.prototype.map = () => []; Object.hasOwn = () => false; Map.prototype.get = () => 1;
      String.prototype.slice = () => ""; return 7`,
    7,
  ],
  'a forged result in the text is text': [
    'return "}{\\"ended\\":\\"memory\\"}"',
    '}{"ended":"memory"}',
  ],
  'a member __proto__ is left out': [
    'return JSON.parse(\'{"a":{"__proto__":{"x":1},"b":2},"__proto__":{"y":1}}\')',
    { a: { b: 2 } },
  ],
  'a member __proto__ by an escape is left out': [
    `return { toJSON: () => Object.defineProperty({ b: 2 }, "__pro\\u0074o__", { value: { x: 1 },
      enumerable: true }) }`,
    { b: 2 },
  ],
  'a proxy as the result': [
    'return new Proxy({ a: 1 }, { get: (t, k) => (k === "toJSON" ? undefined : 5) })',
    { a: 5 },
  ],
  'nothing is left of the call before': [
    `const before = globalThis.left; globalThis.left = "secret"; Object.prototype.left = "secret";
      return before ?? null`,
    null,
  ],
  'nothing is left in modules of the call before': [
    `const b = require("buffer"); const before = b.left ?? Buffer.left ?? console.left ?? fetch.left;
      b.left = Buffer.left = console.left = fetch.left = "secret"; return before ?? null`,
    null,
  ],
  'memory is not what another call left': [
    'const b = Buffer.allocUnsafe(1 << 20); return b.some((byte) => byte !== 0) && b.includes("4242")',
    false,
  ],
  'random numbers do not repeat between calls': [
    'const n = Math.random(); return n >= 0 && n < 1 && n !== Math.random()',
    true,
  ],
  'no shared memory measures time': ['return typeof Atomics === "undefined"', true],
  'what the function gets cannot reach other tenants': [
    `const seen = new Set(); const walk = (o,
      depth) => { if (depth > 6 ||
        (typeof o !== "object" && typeof o !== "function") || o === null || seen.has(o)) return;
      seen.add(o); for (const k of Reflect.ownKeys(o)) { try { walk(o[k], depth + 1) } catch {} } };
      walk(req, 0); walk(globalThis, 0);
      return [...seen].some((o) => String(o?.tenant ?? "").includes("victim"))`,
    false,
  ],
  'a header with a line break is refused': [
    `const { CustomHttpResponseError } = require("strongroom/errors");
      try { throw new CustomHttpResponseError({ status: 200,
      headers: { a: "b\\r\\nc: d" } }) } catch (e) { return e.status }`,
    200,
  ],
  "functions that the function gets are the engine's": [
    `return [fetch, console.log, require,
      Buffer.from].every((f) => f instanceof Function && Object.getPrototypeOf(f) !== null)`,
    true,
  ],
  'with, Function and eval stay inside': [
    'return [new Function("return typeof process")(), (0, eval)("typeof module"), eval("typeof process")]',
    ['undefined', 'undefined', 'undefined'],
  ],
  'weak references and finalizers see nothing else': [
    'const r = new WeakRef({}); new FinalizationRegistry(() => { throw 1 }).register({}, 1); return typeof r',
    'object',
  ],
  'a symbol, a getter and a function in the result are not run outside': [
    'return { f() {}, s: Symbol("a"), get g() { return 1 }, [Symbol.toPrimitive]() { throw 1 } }',
    { g: 1 },
  ],
});

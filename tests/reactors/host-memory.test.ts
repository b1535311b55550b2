/** What code makes its process allocate outside the engine's memory has limits with names. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import * as limits from '../../src/reactors/sandbox/limits.ts';
import { callOf, moduleOf, returnedBy } from '../support/code-calls.ts';
import { descendants } from '../support/running.ts';
import { openTestSandbox } from '../support/sandboxes.ts';

const mebibyte = 1024 * 1024;

/** The most that any of the processes had in memory at one time. */
function peakBytes(): number {
  const peaks = descendants().map((pid) => {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1');
    return 1024 * Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]);
  });
  return Math.max(...peaks);
}

const caught = (code: string) =>
  moduleOf(`try { ${code}; return 'done' } catch (error) { return error.message }`);

const scrypt = (options: string) => `require('crypto').scryptSync('a', 'b', 64, ${options})`;

test('cryptography takes no more memory than it is promised', async (t) => {
  const sandbox = openTestSandbox();
  try {
    assert.equal(await returnedBy(sandbox, callOf(moduleOf('return 1'))), 1);
    const before = peakBytes();
    const refused = {
      [scrypt('{ N: 2 ** 18, r: 15, maxmem: 2 ** 40 }')]: /key derivation may take/,
      [scrypt('{ cost: 2 ** 18, blockSize: 15, maxmem: 2 ** 40 }')]: /key derivation may take/,
      [scrypt('{ N: 2, r: 8, p: 2 ** 18, maxmem: 2 ** 40 }')]: /key derivation may take/,
      'require("crypto").pbkdf2Sync("a", "b", 1, 2 ** 30, "sha512")': /derived key/,
      'require("crypto").hkdfSync("sha512", "a", "b", "c", 2 ** 30)': /derived key/,
      'require("crypto").randomBytes(2 ** 30)': /random bytes/,
      'Buffer.from("x".repeat(9 * 1024 * 1024)).length': /the host takes/,
    };
    for (const [code, message] of Object.entries(refused)) {
      assert.match(String(await returnedBy(sandbox, callOf(caught(code)))), message, code);
    }
    // The most that is permitted: almost 32 MiB.
    const most = `{ N: 2 ** 14, r: 15, maxmem: 2 ** 40 }`;
    assert.equal(await returnedBy(sandbox, callOf(caught(scrypt(most)))), 'done');
    const grown = peakBytes() - before;
    t.diagnostic(`${Math.round(grown / mebibyte)} MiB more than a call that does nothing`);
    assert.ok(grown <= limits.engineBytesMax + limits.derivationBytesMax, String(grown));
  } finally {
    await sandbox.close();
  }
});

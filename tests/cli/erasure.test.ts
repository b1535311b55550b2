/** strongroom erasure verify, with files that nobody vouches for. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { runCommand } from '../support/process.ts';
import {
  erasureFacts,
  publicKeyOf,
  receiptBy,
  signedBy,
  signingKeys,
  stolenKeyReceipts,
} from '../support/signed-statements.ts';
import { temporaryDirectory } from '../support/temporary.ts';

test('a receipt by a replaced key is not genuine if it is dated after the replacement', async (t) => {
  const file = join(temporaryDirectory(t), 'receipt.json');
  for (const { name, receipt, publicKeys, isAccepted } of stolenKeyReceipts()) {
    writeFileSync(file, JSON.stringify(receipt));
    const known = publicKeys.flatMap((key) => ['--public-key', key]);
    const { code, stdout } = await runCommand(['erasure', 'verify', file, ...known], {});
    assert.equal(code, isAccepted ? 0 : 3, name);
    if (!isAccepted) assert.match(stdout, /not trusted, or had been replaced/, name);
  }
});

test('a signed statement that is no receipt of a vault is not genuine, and steers no terminal', async (t) => {
  const file = join(temporaryDirectory(t), 'receipt.json');
  const keys = signingKeys();
  const at = 1_700_000_000_000;
  const hostile = 'x\u001b[2J\u001b]0;title\u0007\n  signed by the vault\u009b8m';
  const key = { purpose: 'data', version: 1, state: 'active' };
  const times = { created_at: at, destroyed_at: null, due_at: null };
  const wrong: readonly object[] = [
    { id: hostile },
    { entity: 'token\n' },
    { entity: 'tenant' },
    { operation: hostile },
    { tenant_id: 'acme' },
    { erased_at: 9e15 },
    { issued_at: -1 },
    { search_terms_gone_at: undefined },
    { results: { gone_by: at } },
    { log_entry: { stream_id: 's', seq: 1 } },
    { log_entry: { stream_id: hostile, seq: 1, head: [1, 'a'] } },
    { log_entry: { stream_id: 's', seq: 1, head: [1, hostile] } },
    { keys: [{ ...key, ...times, purpose: { a: hostile } }] },
    { keys: [{ ...key, ...times, version: hostile }] },
    { keys: [{ ...key, state: 'active' }] },
    { root_key: { source: hostile, key_id: 'k', version: 1 } },
    { root_key: {} },
  ];
  for (const changes of [{}, { keys: [{ ...key, ...times }] }, ...wrong]) {
    const signed = signedBy(keys, erasureFacts(at, changes));
    writeFileSync(file, JSON.stringify(signed));
    const { code, stdout, stderr } = await runCommand(['erasure', 'verify', file], {});
    const name = JSON.stringify(changes);
    assert.equal(code, wrong.includes(changes) ? 3 : 0, `${name} ${stderr}`);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
    assert.doesNotMatch(stdout + stderr, /[\x00-\x09\x0b-\x1f\x7f-\x9f]/, name);
    assert.doesNotMatch(stdout, /^ {2}signed by the vault/m, name);
  }
});

test('an export of the log steers no terminal', async (t) => {
  const file = join(temporaryDirectory(t), 'log.ndjson');
  const hostile = '\u001b[2J\u001b[H The log is intact.\n \u001b[8m';
  const names = { tenant_id: hostile, stream_id: hostile };
  const lines = [
    { kind: 'begin', tenant_id: hostile },
    { kind: 'checkpoint', statement: '{}', public_key: hostile, signature: hostile },
    { kind: 'altered', ...names, seq: 1 },
    { kind: 'end', tenant_id: hostile },
  ];
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  const { code, stdout, stderr } = await runCommand(['logs', 'verify', '--file', file], {});
  assert.equal(code, 3, stderr);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  assert.doesNotMatch(stdout + stderr, /[\x00-\x09\x0b-\x1f]/);
  assert.doesNotMatch(stdout, /^ ?The log is intact/m);
});

test('a file that never ends is not read to its end', async (t) => {
  const receipt = receiptBy(signingKeys(), erasureFacts(1_700_000_000_000));
  const file = join(temporaryDirectory(t), 'receipt.json');
  writeFileSync(file, JSON.stringify(receipt));
  const key = publicKeyOf(signingKeys());
  const calls = [
    ['erasure', 'verify', '/dev/zero'],
    ['erasure', 'verify', file, '--public-key', key, '--public-key', '/dev/zero'],
    ['import', file, '--mapping', '/dev/zero'],
    ['logs', 'verify', '--file', file, '--checkpoint', '/dev/zero'],
    ['logs', 'verify', '--file', '/dev/zero'],
  ];
  for (const words of calls) {
    const { code, stderr } = await runCommand(words, { STRONGROOM_KEY: 'key_of_nothing' });
    assert.notEqual(code, 0, words.join(' '));
    assert.match(stderr, /has more than \d+ (?:bytes|characters) and is not read/, words.join(' '));
  }
});

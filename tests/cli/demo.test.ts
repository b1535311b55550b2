/** `strongroom demo`: tells its story to the end and leaves nothing behind, however it ends. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { interruptCommand, runCommand } from '../support/process.ts';
import { createScanner, filesBelow } from '../support/scan.ts';
import { temporaryDirectory } from '../support/temporary.ts';

test('the demonstration ends by itself and removes its data', async (t) => {
  const directory = temporaryDirectory(t);
  const { code, stdout, stderr } = await runCommand(['demo'], { TMPDIR: directory });
  assert.equal(code, 0, stderr);
  assert.match(stdout, /"approved":true,"ending":"4242"/);
  assert.match(stdout, /token\.deleted [0-9a-f-]{36}\n +webhook-signature: v1,\S{44}\n/);
  assert.match(stdout, /10\. Who saw what/);
  assert.match(stdout, /payments +American Express +Token retrieved, revealed\n/);
  assert.match(stdout, /support +American Express +Token retrieved, masked\n/);
  assert.doesNotMatch(stdout, /undefined|"level":/);
  assert.equal(/4242424242424242|5555555555554444|378282246310005/.test(stdout), false);
  assert.deepEqual(readdirSync(directory), []);
});

test('interrupted, it removes its data all the same', async (t) => {
  const directory = temporaryDirectory(t);
  const interrupt = () => interruptCommand(['demo'], { TMPDIR: directory }, /1\. Two applications/);
  let { code } = await interrupt();
  // On a busy machine the story may be at its end before the signal comes.
  for (let again = 0; code === 0 && again < 5; again += 1) ({ code } = await interrupt());
  assert.equal(code, 130);
  assert.deepEqual(readdirSync(directory), []);
});

test('neither its data directory nor its output holds a card or account number, in any form', async (t) => {
  const directory = temporaryDirectory(t);
  const { stdout, stderr } = await runCommand(['demo', '--keep'], { TMPDIR: directory });
  const numbers = ['4242424242424242', '5555555555554444', '378282246310005', '000123456789'];
  const scan = createScanner(numbers);
  const files = filesBelow(directory);
  assert.ok(files.some(({ path }) => path.endsWith('strongroom.db')));
  assert.deepEqual(
    files.flatMap(({ path, bytes }) => scan(path, bytes)),
    [],
  );
  assert.deepEqual(scan('output', Buffer.from(stdout + stderr)), []);
  assert.equal(scan('a number', Buffer.from(`x${numbers[0]}`)).length, 1);
});

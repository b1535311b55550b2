/** strongroom erasure verify, with files that nobody vouches for. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { runCommand } from '../support/process.ts';
import { stolenKeyReceipts } from '../support/signed-statements.ts';
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

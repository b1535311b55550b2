/** `npm run test:citus` where there is no Citus, or none that loads: only a person's choice is a failure. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { installationFor } from '../support/postgres-installation.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const script = join(import.meta.dirname, '..', 'support', 'citus.ts');

test('a PostgreSQL that has the extension citus and does not load it fails a run only where a person named it', (t) => {
  const directory = temporaryDirectory(t);
  chmodSync(directory, 0o755);
  const native = installationFor(join(directory, 'unpacked'));
  cpSync(native, join(directory, 'native'), { recursive: true, verbatimSymlinks: true });
  const share = join(directory, 'native', 'share', 'postgresql');
  writeFileSync(join(share, 'extension', 'citus.control'), '');
  const binaries = join(directory, 'native', 'bin');
  writeFileSync(join(binaries, 'pg_config'), `#!/bin/sh\necho "${share}"\n`, { mode: 0o755 });
  const run = (...flags: readonly string[]) =>
    spawnSync(process.execPath, [script, ...flags], {
      env: { ...process.env, TEST_CITUS_BIN: binaries },
      encoding: 'utf8',
    });
  const reason = /does not load the extension citus: .*could not access file "citus".*\n$/;

  const named = run();
  assert.match(named.stderr, reason);
  assert.equal(named.status, 1);

  const found = run('--where-it-loads');
  assert.match(found.stdout, /^The tests on Citus did not run: .*\n$/);
  assert.match(found.stdout, reason);
  assert.equal(found.status, 0);
});

test('the tests on Citus say that they did not run, unless a PostgreSQL without it was named', (t) => {
  const runs = (more: Readonly<Record<string, string>>) =>
    spawnSync(process.execPath, [script], {
      encoding: 'utf8',
      env: { PATH: temporaryDirectory(t), ...more },
    });
  const none = runs({});
  assert.equal(none.status, 0, none.stderr);
  assert.match(none.stdout, /^The tests on Citus did not run: no PostgreSQL was found\. .*\n$/);
  const wrong = runs({ TEST_CITUS_BIN: temporaryDirectory(t) });
  assert.equal(wrong.status, 1);
  assert.match(
    wrong.stderr,
    /^The tests on Citus cannot run: of TEST_CITUS_BIN, .* has no PostgreSQL\./,
  );
});

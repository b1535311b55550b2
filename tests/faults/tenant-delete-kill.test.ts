/** The receipt of a deleted tenant is on the disk before the command removes the tenant's rows. */
import assert from 'node:assert/strict';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { untilSo } from '../support/poll.ts';
import { beginCommand, environmentOf, runCommand, spawnVault } from '../support/process.ts';
import { createApplication, request } from '../support/vault.ts';

onBothEngines('a deletion of a tenant that is killed', (engine) => {
  test('leaves the receipt, which verifies', async (t) => {
    const place = await engine.place(t);
    const environment = environmentOf(place);
    const server = await spawnVault(t, environment);
    const made = await runCommand(['tenant', 'create', '--name', 'gone', '--json'], environment);
    const { id, key } = JSON.parse(made.stdout);
    const application = await createApplication(server.url, {}, key);
    const lines = Array.from({ length: 3_000 }, (_, n) =>
      JSON.stringify({ type: 'token', data: `${n}` }),
    );
    const headers = { 'content-type': 'application/x-ndjson' };
    const body = lines.join('\n');
    const sent = { key: application, body, headers };
    assert.equal((await request(`${server.url}/tokens/bulk`, 'POST', sent)).status, 200);

    const words = ['tenant', 'delete', '--tenant', id, '--yes', '--json'];
    const command = beginCommand(t, words, environment);
    const file = join(place.dataDir, `erasure-${id}.json`);
    await untilSo(
      () => existsSync(file) && statSync(file).size > 0,
      () => 'the receipt is not written',
    );
    const left = await engine.run(place, 'select count(*) as count from tokens');
    await command.kill();
    assert.ok(Number(left[0]?.['count']) > 0, 'before the rows are removed');
    assert.equal(statSync(file).mode & 0o777, 0o600);
    const verified = await runCommand(['erasure', 'verify', file, '--json'], {});
    assert.equal(verified.code, 0, verified.stdout + verified.stderr);
    const { receipt } = JSON.parse(verified.stdout);
    assert.deepEqual([receipt.entity, receipt.id], ['tenant', id]);
  });
});

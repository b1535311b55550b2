/** `strongroom doctor` warns of keys: of old ones, of rotations that do not go on, of a seal, and of old backups. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { day } from '../../src/base/clock.ts';
import { SharedClock } from '../../src/base/shared-clock.ts';
import { notOnCitus } from '../support/citus-cluster.ts';
import { type Engine, onBothEngines } from '../support/engines.ts';
import {
  type Environment,
  environmentOf,
  runCommand,
  runWithInput,
  spawnVault,
} from '../support/process.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { managementKey, startVault, TestClock } from '../support/vault.ts';

/** What doctor reports of one check and status, one line each. */
async function reported(environment: Environment, check: string, status: string): Promise<string> {
  const { stdout, stderr } = await runCommand(['doctor', '--json'], environment);
  assert.equal(stderr, '');
  const { findings } = JSON.parse(stdout) as {
    findings: readonly Record<'check' | 'status' | 'message' | 'advice', string>[];
  };
  return findings
    .filter((finding) => finding.check === check && finding.status === status)
    .map(({ message, advice }) => `${message} ${advice}`)
    .join('\n');
}

/** A stopped vault that was made so long ago, with a rotation of data keys that nobody worked on since. */
async function oldVault(t: TestContext, engine: Engine, ageMs: number): Promise<Environment> {
  const { memory } = SharedClock.standingAt(Date.now() - ageMs);
  const { place, send, stop } = await startVault(t, engine, { clock: new TestClock(memory) });
  const body = { purpose: 'data' };
  const begun = await send('POST', '/tenants/self/keys/rotations', { key: managementKey, body });
  assert.equal(begun.status, 202, begun.text);
  await stop();
  return environmentOf(place);
}

onBothEngines('doctor', (engine) => {
  test('warns of keys that are older than the limit, and says which command replaces each', async (t) => {
    const environment = await oldVault(t, engine, 400 * day);
    const warnings = await reported(environment, 'keys', 'warning');
    for (const name of ['search', 'fingerprint', 'log', 'webhooks']) {
      const sentence = `the ${name} key of 1 tenant is older than that Run strongroom keys rotate ${name}.`;
      assert.ok(warnings.includes(sentence), `${sentence} in ${warnings}`);
    }
    assert.match(warnings, /the data key of 1 tenant .*A running server replaces it/);
    const ofRoot = await reported(environment, 'root key', 'warning');
    assert.match(ofRoot, /in use for 400 days, longer than .*keys rotate root/);
    const off = { ...environment, STRONGROOM_KEY_MAX_AGE: 'off' };
    assert.equal(await reported(off, 'keys', 'warning'), '');
    assert.match(await reported(off, 'keys', 'ok'), /STRONGROOM_KEY_MAX_AGE is off/);
  });

  test('warns of a rotation that no server works on, and of one that is paused', async (t) => {
    const environment = await oldVault(t, engine, day / 24);
    assert.match(
      await reported(environment, 'key rotation', 'warning'),
      /that of 1 tenant is stuck: .*Start a server/,
    );
    const paused = await runCommand(['keys', 'pause'], environment);
    assert.equal(paused.code, 0, paused.stderr);
    assert.equal(
      await reported(environment, 'key rotation', 'warning'),
      'that of 1 tenant is paused Run strongroom keys resume.',
    );
    const resumed = await runCommand(['keys', 'resume'], environment);
    assert.equal(resumed.code, 0, resumed.stderr);
    assert.doesNotMatch(await reported(environment, 'key rotation', 'warning'), /paused/);
  });

  test('warns of a last backup that is a week old', {
    skip: notOnCitus('the vault makes no backups of distributed tables'),
  }, async (t) => {
    const { place, stop } = await startVault(t, engine);
    await stop();
    const environment = environmentOf(place);
    const made = await runCommand(['backup', join(temporaryDirectory(t), 'backup')], environment);
    assert.equal(made.code, 0, made.stderr);
    const file = join(place.dataDir, 'last-backup.json');
    const note = JSON.parse(readFileSync(file, 'utf8'));
    for (const [days, status] of [
      [6, 'ok'],
      [7, 'warning'],
    ] as const) {
      const created_at = new Date(Date.now() - days * day - 1000).toISOString();
      writeFileSync(file, JSON.stringify({ ...note, created_at }));
      assert.match(
        await reported(environment, 'backup', status),
        new RegExp(`\\(${days} days ago\\)`),
      );
    }
  });

  test('says that a server is sealed, and how many shares it has', async (t) => {
    const place = await engine.place(t);
    const first = await spawnVault(t, environmentOf(place));
    const to = ['--to', 'shamir', '--shares', '3', '--threshold', '2', '--json'];
    const moved = await runCommand(['keys', 'rotate', 'root', ...to], environmentOf(place));
    assert.equal(moved.code, 0, moved.stderr);
    await first.kill();
    const environment = environmentOf(place, { STRONGROOM_ROOT_KEY_SOURCE: 'shamir' });
    assert.match(await reported(environment, 'seal', 'problem'), /Start the server/);
    await spawnVault(t, environment);
    const { shares } = JSON.parse(moved.stdout) as { shares: readonly string[] };
    for (const [given, share] of shares.slice(0, 2).entries()) {
      const sealed = await reported(environment, 'seal', 'problem');
      assert.match(sealed, new RegExp(`the server is sealed: ${given} of 2 shares are given`));
      const unsealed = await runWithInput(['unseal'], environment, `${share}\n`);
      assert.equal(unsealed.code, 0, unsealed.stderr);
    }
    assert.equal(await reported(environment, 'seal', 'problem'), '');
    assert.match(await reported(environment, 'seal', 'ok'), /is unsealed/);
  });
});

/** `strongroom logs verify` and `logs export`: offline, on a copy, without the root key. */
import assert from 'node:assert/strict';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { editEntry } from '../support/blocks.ts';
import { type Engine, engineOf, onBothEngines, type Place } from '../support/engines.ts';
import { mixedTraffic, signCheckpoints } from '../support/logs.ts';
import { environmentOf, type Finished, runCommand } from '../support/process.ts';
import { rowsOf, storedRows } from '../support/rows.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { managementKey, startVault } from '../support/vault.ts';

interface Fixture {
  readonly place: Place;
  /** Where nothing of the vault is. */
  readonly elsewhere: string;
  /** What the commands take as `--database`. */
  readonly database: string;
  /** A file with the answer of GET /logs/checkpoint, as of the end. */
  readonly checkpoint: string;
  readonly publicKey: string;
}

/** A log with three checkpoints, whose vault has stopped; of SQLite, a copy that lies alone. */
async function fixture(t: TestContext, engine: Engine): Promise<Fixture> {
  const vault = await startVault(t, engine);
  const elsewhere = temporaryDirectory(t);
  await mixedTraffic(vault, 1);
  await signCheckpoints(vault);
  await mixedTraffic(vault, 1);
  await signCheckpoints(vault);
  const kept = await vault.send('GET', '/logs/checkpoint', { key: managementKey });
  const checkpoint = join(elsewhere, 'checkpoint.json');
  writeFileSync(checkpoint, kept.text);
  await vault.stop();
  if (engine.name === 'sqlite') {
    copyFileSync(join(vault.place.dataDir, 'strongroom.db'), join(elsewhere, 'strongroom.db'));
  }
  const place = { ...vault.place, dataDir: elsewhere };
  const database = place.databaseUrl ?? join(elsewhere, 'strongroom.db');
  return { place, elsewhere, database, checkpoint, publicKey: kept.body.public_key };
}

/** Far longer than what follows its last checkpoint; PostgreSQL's lanes share the entries by chance. */
function longestStream<E extends { readonly stream_id: string }>(
  entries: readonly E[],
): readonly E[] {
  const streams = [...Map.groupBy(entries, ({ stream_id }) => stream_id).values()];
  return streams.reduce((one, other) => (other.length > one.length ? other : one));
}

/** No variable of a vault is set: neither root key nor database are where it could find them. */
const verify = (...flags: readonly string[]): Promise<Finished> =>
  runCommand(['logs', 'verify', ...flags], {});

onBothEngines('strongroom logs verify', (engine) => {
  test('0: an intact log, by database, by checkpoint, by key, and as JSON', async (t) => {
    const { database, elsewhere, checkpoint, publicKey } = await fixture(t, engine);
    const plain = await verify('--database', database);
    assert.equal(plain.code, 0, plain.stdout + plain.stderr);
    assert.match(plain.stdout, /^The log is intact\.\n/);
    assert.ok(plain.stdout.includes(`signed by ${publicKey}`), 'the key to compare is told');
    assert.match(plain.stdout, / of 1 tenant\b/);
    assert.doesNotMatch(plain.stdout, /\b1 (?:entries|streams|tenants|checkpoints)\b/);
    const trusted = await verify('--database', database, '--checkpoint', checkpoint);
    assert.equal(trusted.code, 0, trusted.stdout);
    assert.doesNotMatch(trusted.stdout, /signed by/);
    const kept = JSON.parse(readFileSync(checkpoint, 'utf8'));
    const strange = join(elsewhere, 'strange.json');
    const public_keys = [...kept.public_keys, Buffer.alloc(32, 7).toString('base64')];
    writeFileSync(strange, JSON.stringify({ ...kept, public_keys }));
    const refused = await verify('--database', database, '--checkpoint', strange, '--json');
    assert.equal(refused.code, 3, 'no key counts that the log did not introduce');
    assert.deepEqual(
      JSON.parse(refused.stdout).findings.map(({ kind }: { kind: string }) => kind),
      ['forged'],
    );
    const pem = join(elsewhere, 'key.pem');
    writeFileSync(pem, JSON.parse(readFileSync(checkpoint, 'utf8')).public_key_pem);
    for (const key of [publicKey, pem]) {
      const byKey = await verify('--database', database, '--public-key', key, '--json');
      assert.equal(byKey.code, 0, byKey.stdout);
      const verification = JSON.parse(byKey.stdout);
      assert.deepEqual(verification.findings, []);
      assert.ok(verification.entries > 20 && verification.checkpoints >= 2);
    }
    if (engine.name === 'sqlite') {
      const directory = await verify('--database', elsewhere, '--checkpoint', checkpoint);
      assert.equal(directory.code, 0, 'a directory stands for the file in it');
    }
  });

  test('3: an altered log; the first bad entry is named', async (t) => {
    const { place, database, checkpoint } = await fixture(t, engine);
    const stream = longestStream(await storedRows(engine, place, 'logs'));
    const block = stream.find(({ last_seq }) => last_seq >= 5);
    assert.ok(block);
    const { first_seq: first, last_seq: last, stream_id } = block;
    const where = `where stream_id = '${stream_id}' and first_seq`;
    await editEntry(engine, place, block, { seq: 5, change: { entity_id: 'another' } });
    const edited = await verify('--database', database);
    assert.equal(edited.code, 3);
    assert.match(edited.stdout, /NOT intact/);
    assert.match(edited.stdout, new RegExp(`edited: .*\\b${first}\\b[^]*stream ${stream_id}`));
    await engine.run(place, `delete from logs ${where} = ${first}`);
    const deleted = await verify('--database', database);
    assert.equal(deleted.code, 3);
    const range = first === last ? `entry ${first}` : `entries ${first} to ${last}`;
    assert.ok(deleted.stdout.includes(`deleted: ${range} deleted`), deleted.stdout);
    await engine.run(place, `delete from logs ${where} >= ${first}`);
    await engine.run(place, 'delete from checkpoints');
    assert.equal((await verify('--database', database)).code, 0, 'nothing left tells of it');
    const truncated = await verify('--database', database, '--checkpoint', checkpoint);
    assert.equal(truncated.code, 3);
    assert.match(truncated.stdout, new RegExp(`truncated: entries ${first} to \\d+`));
  });

  test('3: statements signed by another key than the one that is trusted', async (t) => {
    const { database } = await fixture(t, engine);
    const key = Buffer.alloc(32, 7).toString('base64');
    const { code, stdout } = await verify('--database', database, '--public-key', key);
    assert.equal(code, 3);
    assert.match(stdout, /forged: /);
  });
});

test('strongroom logs verify, 1: no database there; 2: flags that cannot be', async (t) => {
  const { database, elsewhere, checkpoint } = await fixture(t, engineOf('sqlite'));
  const missing = await verify('--database', join(elsewhere, 'nothing.db'));
  assert.equal(missing.code, 1);
  assert.match(missing.stderr, /There is no database/);
  const wrong = [
    ['--database', database, '--public-key', checkpoint],
    ['--database', database, '--tenant', 'nobody'],
    ['--file', checkpoint, '--database', database],
    ['--database', database, '--checkpoint', join(elsewhere, 'empty')],
    ['--unknown'],
  ];
  writeFileSync(join(elsewhere, 'empty'), '{}');
  for (const flags of wrong) assert.equal((await verify(...flags)).code, 2, flags.join(' '));
});

test('a file that is no exported log is said to be none, and neither intact nor altered', async (t) => {
  const { elsewhere } = await fixture(t, engineOf('sqlite'));
  const file = join(elsewhere, 'other');
  for (const [text, reason] of [
    ['', /is empty/],
    ['a line\nand another\n', /is not an exported log/],
  ] as const) {
    writeFileSync(file, text);
    const { code, stdout, stderr } = await verify('--file', file);
    assert.equal(code, 1);
    assert.match(stderr, reason);
    assert.doesNotMatch(stdout + stderr, /intact/i);
  }
});

onBothEngines('strongroom logs export', (engine) => {
  test('a file that verifies without a database, and shows what was done to it', async (t) => {
    const { database, elsewhere, checkpoint } = await fixture(t, engine);
    const file = join(elsewhere, 'log.ndjson');
    const exported = await runCommand(
      ['logs', 'export', '--database', database, '--out', file],
      {},
    );
    assert.equal(exported.code, 0, exported.stderr);
    const text = readFileSync(file, 'utf8');
    const toOutput = await runCommand(['logs', 'export', '--database', database], {});
    assert.equal(toOutput.stdout, text);
    const intact = await verify('--file', file, '--checkpoint', checkpoint);
    assert.equal(intact.code, 0, intact.stdout);
    assert.match(intact.stdout, / of 1 tenant\n/);

    const lines = text.trimEnd().split('\n');
    const entries = lines.flatMap((line, at) => {
      const record = JSON.parse(line);
      return record.kind === 'entry' ? [{ ...record, at }] : [];
    });
    const beginning = longestStream(entries).slice(0, 8);
    const middle = beginning.findLast(({ result }) => result === 'success')?.at;
    assert.ok(middle);
    const line = lines[middle] ?? '';
    const alterations: readonly (readonly [RegExp, readonly string[]])[] = [
      [/deleted: /, lines.toSpliced(middle, 1)],
      [/inserted: /, lines.toSpliced(middle, 0, line)],
      [/reordered: /, lines.with(middle, lines[middle + 1] ?? '').with(middle + 1, line)],
      [/edited: /, lines.with(middle, line.replace('"success"', '"denied"'))],
      [/unreadable: line 8/, lines.with(7, `${lines[7]?.slice(0, -1)},"note":"x"}`)],
      [/unreadable: /, lines.with(middle, line.replace('{', '{ '))],
      [/truncated: /, lines.slice(0, -3)],
      [/truncated: the export ends/, lines.slice(0, -1)],
    ];
    for (const [kind, altered] of alterations) {
      writeFileSync(file, `${altered.join('\n')}\n`);
      const { code, stdout } = await verify('--file', file, '--checkpoint', checkpoint);
      assert.equal(code, 3, String(kind));
      assert.match(stdout, kind);
    }
  });

  test('exporting the configured log is an entry in it; a tenant is exported alone', async (t) => {
    const vault = await startVault(t, engine);
    await mixedTraffic(vault, 1);
    const environment = environmentOf(vault.place);
    const named = await runCommand(['logs', 'export', '--tenant', 'default'], environment);
    assert.equal(named.code, 0, named.stderr);
    const [begin] = named.stdout.split('\n');
    const [tenant] = await rowsOf(engine, vault.place, 'tenants');
    assert.equal(begin, `{"kind":"begin","tenant_id":"${tenant?.tenant_id}"}`);
    const entries = await rowsOf(engine, vault.place, 'logs');
    const [entry] = entries.filter(({ operation }) => operation === 'export');
    assert.equal(entry?.entity_type, 'log');
    assert.equal(entry?.entity_id, tenant?.tenant_id);
    // Beside the running vault, whose database it is.
    const verified = await runCommand(['logs', 'verify', '--state'], environment);
    assert.equal(verified.code, 0, verified.stdout + verified.stderr);
  });
});

onBothEngines('strongroom logs export, filtered', (engine) => {
  test('writes only the entries of data that was shown so, and through that', async (t) => {
    const { database } = await fixture(t, engine);
    const run = (...flags: readonly string[]) =>
      runCommand(['logs', 'export', '--database', database, ...flags], {});
    const whole = (await run()).stdout.trimEnd().split('\n');
    const shown = whole.filter((line) => line.includes('"shown":"revealed","through":"get"'));
    assert.ok(shown.length > 0);
    const filtered = await run('--shown', 'revealed', '--through', 'get', '--json');
    assert.equal(filtered.code, 0, filtered.stderr);
    assert.deepEqual(filtered.stdout.trimEnd().split('\n'), shown);
    assert.match(filtered.stderr, new RegExp(`\\{"entries":${shown.length}\\}\n$`));
    assert.equal((await run('--through', 'proxy')).stdout, '');
  });

  test('2: a word that no entry has', async () => {
    for (const flag of ['--shown', '--through']) {
      const { code, stderr } = await runCommand(['logs', 'export', flag, 'everything'], {});
      assert.equal(code, 2);
      assert.match(stderr, new RegExp(`${flag} must be one of `));
    }
  });
});

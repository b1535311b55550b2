/** A backup of either engine restores to the same reads on either engine, or the restore names what is missing. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, type TestContext, test } from 'node:test';
import {
  assertSameVault,
  backedUp,
  type FilledVault,
  filledVault,
  newRootKey,
  restore,
  rowsIn,
} from '../support/backups.ts';
import { notOnCitus } from '../support/citus-cluster.ts';
import { emptyPlace } from '../support/copy-places.ts';
import { type Engine, type EngineName, engineOf, type Place } from '../support/engines.ts';
import { type Environment, environmentOf, runCommand, spawnVault } from '../support/process.ts';
import { smallDisk } from '../support/small-disk.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const names: readonly EngineName[] = ['sqlite', 'postgres'];

const manifestOf = (directory: string) =>
  JSON.parse(readFileSync(join(directory, 'manifest.json'), 'utf8'));

/** It says so, and what to do instead. */
const noBackup = 'the vault makes no backups of distributed tables';

const ends: (() => unknown)[] = [];
after(async () => {
  for (const end of ends.reverse()) await end();
});
const unaltered = new Map<EngineName, Promise<FilledVault>>();

/** One for all tests that only read it, which is most of what they would do. */
function unalteredVault(name: EngineName): Promise<FilledVault> {
  const vault = unaltered.get(name) ?? filledVault({ after: (end) => void ends.push(end) }, name);
  unaltered.set(name, vault);
  return vault;
}

for (const from of names) {
  test(`a backup of ${from} restores to the same rows and reads on both engines`, {
    skip: notOnCitus(noBackup),
  }, async (t) => {
    const vault = await unalteredVault(from);
    const before = await rowsIn(vault.engine, vault.place);
    const directory = await backedUp(t, vault);
    assert.deepEqual(readdirSync(directory).sort(), ['manifest.json', 'strongroom.db']);
    assert.equal(statSync(directory).mode & 0o777, 0o700);
    for (const file of readdirSync(directory)) {
      assert.equal(statSync(join(directory, file)).mode & 0o777, 0o600);
    }
    const manifest = manifestOf(directory);
    assert.equal(manifest.engine, from);
    assert.equal(manifest.root_key.source, 'environment');
    assert.match(manifest.vault_id, /./);
    for (const to of names) {
      const engine = engineOf(to);
      const place = await engine.place(t);
      const dry = await restore(directory, place, vault.rootKey, '--dry-run');
      assert.equal(dry.code, 0, dry.stderr);
      await assertEmpty(engine, place);
      const restored = await restore(directory, place, vault.rootKey, '--json');
      assert.equal(restored.code, 0, restored.stderr);
      const { created_at, tenants } = JSON.parse(restored.stdout);
      assert.deepEqual([created_at, tenants], [manifest.created_at, 1]);
      await assertSame(t, { vault, place, engine, before, manifest });
    }
  });
}

interface Restored {
  readonly vault: FilledVault;
  readonly engine: Engine;
  readonly place: Place;
  readonly before: readonly string[];
  // biome-ignore lint/suspicious/noExplicitAny: parsed JSON
  readonly manifest: any;
}

async function assertSame(
  t: TestContext,
  { vault, engine, place, before, manifest }: Restored,
): Promise<void> {
  const [row] = (await rowsIn(engine, place)).filter((line) =>
    /"message":"Tenant restored/.test(line),
  );
  assert.ok(row, 'the log says that the vault was restored');
  assert.ok(row.includes(manifest.created_at), 'when the backup was made');
  assert.ok(row.includes(manifest.logs[0].head), 'and from which head');
  await assertSameVault(t, vault, { engine, place, before });
}

async function assertEmpty(engine: Engine, place: Place): Promise<void> {
  if (engine.name === 'sqlite') {
    assert.deepEqual(
      existsSync(place.dataDir)
        ? readdirSync(place.dataDir).filter((name) => name !== 'strongroom.lock')
        : [],
      [],
    );
    return;
  }
  const tables = `select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`;
  assert.deepEqual(await engine.run(place, tables), []);
}

test('a part that is missing, altered or foreign is named, and nothing is changed', async (t) => {
  const vault = await filledVault(t, 'sqlite');
  const directory = await backedUp(t, vault);
  const other = await backedUp(t, await filledVault(t, 'sqlite'));
  const later = join(temporaryDirectory(t), 'later');
  const running = await spawnVault(t, environmentOf(vault.place, vault.rootKey));
  running.terminate();
  await running.finished;
  await runCommand(['backup', later], environmentOf(vault.place, vault.rootKey));
  const database = (backup: string) => join(backup, 'strongroom.db');
  const edit = (backup: string, change: (manifest: ReturnType<typeof manifestOf>) => void) => {
    const manifest = manifestOf(backup);
    change(manifest);
    writeFileSync(join(backup, 'manifest.json'), JSON.stringify(manifest));
  };
  const cases: Record<string, readonly [(backup: string) => void, RegExp]> = {
    'no manifest': [(at) => rmSync(join(at, 'manifest.json')), /manifest\.json is missing/],
    'a link to a manifest': [
      (at) => {
        renameSync(join(at, 'manifest.json'), join(at, 'other'));
        symlinkSync('other', join(at, 'manifest.json'));
      },
      /manifest\.json is a link/,
    ],
    'a link to a database': [
      (at) => {
        rmSync(database(at));
        symlinkSync(database(directory), database(at));
      },
      /strongroom\.db is a link/,
    ],
    'a pipe': [
      (at) => {
        rmSync(database(at));
        execFileSync('mkfifo', [database(at)]);
      },
      /strongroom\.db is .* a special file/,
    ],
    'no database': [(at) => rmSync(database(at)), /strongroom\.db is missing/],
    'a manifest cut short': [
      (at) => writeFileSync(join(at, 'manifest.json'), '{"format":'),
      /manifest\.json is not a manifest/,
    ],
    'a manifest of a later release': [
      (at) => edit(at, (one) => Object.assign(one, { format: 'strongroom backup 2' })),
      /manifest\.json is of a later release/,
    ],
    'a newer schema': [
      (at) => edit(at, (one) => Object.assign(one, { schema: 9999 })),
      /schema version 9999, and this release knows \d+/,
    ],
    'an altered byte': [
      (at) => {
        const bytes = readFileSync(database(at));
        bytes[bytes.length - 100] = (bytes[bytes.length - 100] ?? 0) ^ 1;
        writeFileSync(database(at), bytes);
      },
      /strongroom\.db was altered or damaged/,
    ],
    'more bytes': [(at) => appendFileSync(database(at), 'x'), /strongroom\.db was altered/],
    'a database of another vault': [
      (at) => cpSync(database(other), database(at)),
      /strongroom\.db is of another vault/,
    ],
    'a database of another time': [
      (at) => cpSync(database(later), database(at)),
      /strongroom\.db is of another backup of this vault/,
    ],
    'a log beside the database': [
      (at) => writeFileSync(`${database(at)}-wal`, 'pages'),
      /strongroom\.db-wal is not a part of the backup/,
    ],
    'another count': [
      (at) => edit(at, (one) => Object.assign(one.rows, { tokens: 1 })),
      /table tokens has \d+ rows, and manifest\.json says 1/,
    ],
    'another head': [
      (at) => edit(at, (one) => Object.assign(one.logs[0], { head: '0'.repeat(64) })),
      /log of tenant \S+ does not end where manifest\.json says/,
    ],
    'a time that is a text': [
      (at) => edit(at, (one) => Object.assign(one, { created_at: '2026-11-01 (\u001b[31m)' })),
      /manifest\.json is not a manifest/,
    ],
    'a release that is a text': [
      (at) => edit(at, (one) => Object.assign(one, { product: '\u001b[31m', schema: 9999 })),
      /manifest\.json is not a manifest/,
    ],
    'a table whose name is a text': [
      (at) => edit(at, (one) => Object.assign(one.rows, { '\u001b]0;title\u0007': 5 })),
      /manifest\.json is not a manifest/,
    ],
    'a tenant that is a text': [
      (at) => edit(at, (one) => Object.assign(one.logs[0], { tenant_id: '\u001b[31m' })),
      /manifest\.json is not a manifest/,
    ],
    'another digest of a part': [
      (at) => edit(at, (one) => Object.assign(one.parts[0], { sha256: '0'.repeat(64) })),
      /strongroom\.db was altered or damaged/,
    ],
  };
  const embedded = { databaseUrl: undefined, dataDir: join(temporaryDirectory(t), 'none') };
  const postgres = engineOf('postgres');
  const server = await emptyPlace(t, postgres);
  const places: Place[] = [embedded, server];
  for (const [title, [alter, says]] of Object.entries(cases)) {
    const at = join(temporaryDirectory(t), 'altered');
    cpSync(directory, at, { recursive: true });
    alter(at);
    // Each case is tried on both engines, on one of them with --dry-run.
    places.reverse();
    const [one, other] = places;
    assert.ok(one && other);
    const refused = await Promise.all([
      restore(at, one, vault.rootKey),
      restore(at, other, vault.rootKey, '--dry-run'),
    ]);
    for (const { code, stderr } of refused) {
      assert.equal(code, 1, title);
      assert.match(stderr, says, title);
    }
    assert.ok(!existsSync(embedded.dataDir), title);
  }
  await assertEmpty(postgres, server);
});

test('a database to which an attacker has added something, with a manifest that says so, is refused', async (t) => {
  const vault = await unalteredVault('sqlite');
  const directory = await backedUp(t, vault);
  // One text for both engines: SQLite reads a column and a comment, PostgreSQL the end of a list and a statement.
  const column = '/* /* */ null -- */ finished_at) select version() --';
  const additions: Record<string, string> = {
    'a trigger': 'create trigger added before delete on tokens begin select raise(ignore); end',
    'a view': 'create view added as select * from tokens',
    'an index': 'create index added on tokens (token_id)',
    'a table': 'create table added (one text)',
    'a column': 'alter table tokens add column added text',
    'the name of a column': `alter table key_rotations rename column finished_at to "${column}"`,
    'no index': 'drop index fingerprint_claims_by_owner',
  };
  for (const [title, sql] of Object.entries(additions)) {
    const at = join(temporaryDirectory(t), 'altered');
    cpSync(directory, at, { recursive: true });
    const file = join(at, 'strongroom.db');
    const database = new DatabaseSync(file);
    database.exec(sql);
    database.close();
    const manifest = manifestOf(at);
    const bytes = readFileSync(file);
    manifest.parts[0].bytes = bytes.length;
    manifest.parts[0].sha256 = createHash('sha256').update(bytes).digest('hex');
    writeFileSync(join(at, 'manifest.json'), JSON.stringify(manifest));
    for (const name of names) {
      const engine = engineOf(name);
      const place = await emptyPlace(t, engine);
      const { code, stderr } = await restore(at, place, vault.rootKey);
      assert.equal(code, 1, title);
      assert.match(stderr, /was altered: .* is not as a vault of schema version \d+ has it/, title);
      await assertEmpty(engine, place);
    }
  }
});

test('tables of another application in the database are not touched', async (t) => {
  const vault = await unalteredVault('sqlite');
  const directory = await backedUp(t, vault);
  const engine = engineOf('postgres');
  for (const table of ['events', 'sessions', 'rate_limits']) {
    const place = await emptyPlace(t, engine);
    await engine.run(place, `create table ${table} as select 'precious' as own`);
    const { code, stderr } = await restore(directory, place, vault.rootKey);
    assert.equal(code, 1, table);
    assert.match(stderr, /not empty.*Nothing was changed/);
    assert.deepEqual(await engine.run(place, `select * from ${table}`), [{ own: 'precious' }]);
    const all = `select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`;
    assert.deepEqual(await engine.run(place, all), [{ relname: table }]);
  }
});

for (const name of names) {
  test(`a place that is not empty, or another root key, is refused on ${name}`, {
    skip: name === 'postgres' && notOnCitus(noBackup),
  }, async (t) => {
    const vault = await unalteredVault(name);
    const directory = await backedUp(t, vault);
    const before = await rowsIn(vault.engine, vault.place);
    const taken = await restore(directory, vault.place, vault.rootKey);
    assert.equal(taken.code, 1);
    assert.match(taken.stderr, /not empty.*Nothing was changed/);
    assert.deepEqual(await rowsIn(vault.engine, vault.place), before);
    const dry = await restore(directory, vault.place, vault.rootKey, '--dry-run');
    assert.equal(dry.code, 0, 'a backup can be verified next to its vault');
    const place = await vault.engine.place(t);
    const foreign = await restore(directory, place, newRootKey());
    assert.equal(foreign.code, 1);
    assert.match(
      foreign.stderr,
      /does not open the vault, which was sealed under key \S+ of the source/,
    );
    await assertEmpty(vault.engine, place);
    const without = await restore(directory, place, {});
    assert.equal(without.code, 1);
    assert.match(without.stderr, /root key .*is missing/);
    await assertEmpty(vault.engine, place);
  });
}

test('a restore that was killed leaves a place that is not served, until the next restore', {
  skip: notOnCitus(noBackup),
}, async (t) => {
  const vault = await unalteredVault('postgres');
  const directory = await backedUp(t, vault);
  for (const name of names) {
    const engine = engineOf(name);
    const place = await engine.place(t);
    const environment = environmentOf(place, vault.rootKey);
    // What a kill leaves: the mark is the first thing that is written, and the last that goes.
    if (name === 'sqlite') {
      mkdirSync(join(place.dataDir, 'restoring'), { recursive: true });
      cpSync(join(directory, 'strongroom.db'), join(place.dataDir, 'restoring', 'strongroom.db'));
    } else {
      assert.equal((await restore(directory, place, vault.rootKey)).code, 0);
      await engine.run(place, 'update schema_version set oldest_server = 2147483647');
      await engine.run(place, 'delete from tokens');
    }
    for (const words of [['serve'], ['tenant', 'list']]) {
      const refused = await runCommand(words, environment);
      assert.equal(refused.code, 1, refused.stdout);
      assert.match(refused.stderr + refused.stdout, /did not finish, so it is not served/);
    }
    const again = await restore(directory, place, vault.rootKey);
    assert.equal(again.code, 0, again.stderr);
    const tokens = (await rowsIn(engine, place)).filter((row) => row.startsWith('tokens '));
    assert.equal(tokens.length, manifestOf(directory).rows.tokens);
    const running = await spawnVault(t, environment);
    running.terminate();
    await running.finished;
  }
});

test('a full disk ends a backup and a restore without anything that looks complete', {
  skip: notOnCitus(noBackup),
}, async (t) => {
  const vault = await unalteredVault('postgres');
  const directory = await backedUp(t, vault);
  const disk = smallDisk(t, 1);
  if (disk === undefined) return t.diagnostic('nobody may mount a small disk here: not tested');
  execFileSync('dd', ['if=/dev/zero', `of=${join(disk, 'filler')}`, 'bs=1024', 'count=700'], {
    stdio: 'ignore',
  });
  const target = join(disk, 'backup');
  const failed = await runCommand(['backup', target], environmentOf(vault.place, vault.rootKey));
  assert.equal(failed.code, 1);
  assert.match(failed.stderr, /The disk of \S+ is full\. No backup was made/);
  assert.deepEqual(existsSync(target) ? readdirSync(target) : [], []);
  const place = { databaseUrl: undefined, dataDir: join(disk, 'data') };
  const short = await restore(directory, place, vault.rootKey);
  assert.equal(short.code, 1);
  assert.match(short.stderr, /The disk of \S+ is full\. Nothing was restored/);
  await assertEmpty(engineOf('sqlite'), place);
});

test('backup --keep names backups by time, and keeps the newest that are complete', async (t) => {
  const vault = await unalteredVault('sqlite');
  const parent = join(temporaryDirectory(t), 'backups');
  const environment = environmentOf(vault.place, vault.rootKey);
  const backUp = async () => {
    const made = await runCommand(['backup', '--keep', '2', parent, '--json'], environment);
    assert.equal(made.code, 0, made.stderr);
    return JSON.parse(made.stdout);
  };
  const first = (await backUp()).directory;
  const older = ['2001-01-01T00-00-00Z', '2002-01-01T00-00-00Z'].map((name) => join(parent, name));
  for (const one of older) cpSync(first, one, { recursive: true });
  const interrupted = join(parent, '2003-01-01T00-00-00Z');
  mkdirSync(interrupted);
  writeFileSync(join(interrupted, 'strongroom.db.partial'), '');
  const own = join(parent, 'notes');
  mkdirSync(own);
  writeFileSync(join(own, 'manifest.json'), '{}');
  symlinkSync('notes', join(parent, '2000-01-01T00-00-00Z'));
  const kept = foreignDirectories(parent, first);
  renameSync(first, join(parent, '2020-01-01T00-00-00Z'));
  const { directory, removed } = await backUp();
  assert.deepEqual(removed.sort(), [...older, interrupted].sort());
  assert.ok(existsSync(join(own, 'manifest.json')), 'links are not followed');
  assert.deepEqual(readdirSync(parent).sort(), [
    '2000-01-01T00-00-00Z',
    ...kept,
    '2020-01-01T00-00-00Z',
    directory.slice(parent.length + 1),
    'notes',
  ]);
  const wrong = await runCommand(['backup', '--keep', '0', parent], environment);
  assert.equal(wrong.code, 2);
  assert.match(wrong.stderr, /--keep must be a number from 1/);
});

/** Named like backups: one of another vault, and others that hold what no backup does. */
function foreignDirectories(parent: string, backup: string): string[] {
  const place = (year: number) => join(parent, `${year}-01-01T00-00-00Z`);
  for (const year of [2004, 2005, 2006]) cpSync(backup, place(year), { recursive: true });
  const manifest = JSON.parse(readFileSync(join(backup, 'manifest.json'), 'utf8'));
  const other = { ...manifest, vault_id: 'another-vault' };
  writeFileSync(join(place(2004), 'manifest.json'), JSON.stringify(other));
  writeFileSync(join(place(2005), 'manifest.json'), '{}');
  writeFileSync(join(place(2006), 'notes.txt'), 'kept');
  mkdirSync(join(place(2007), 'photos'), { recursive: true });
  return [2004, 2005, 2006, 2007].map((year) => place(year).slice(parent.length + 1));
}

/** The command lines of the files for deployment, as they are written. */
const scheduled: Readonly<Record<string, { readonly from: EngineName; readonly line: RegExp }>> = {
  'deploy/systemd/strongroom-backup.service': {
    from: 'sqlite',
    line: /^ExecStart=\/bin\/sh -ec '([^']+)'$/m,
  },
  'deploy/kubernetes/backup.yaml': {
    from: 'postgres',
    line: /- -ec\n +- \|\n((?: {18}.+\n)+)/,
  },
};

for (const [path, { from, line }] of Object.entries(scheduled)) {
  test(`what ${path} runs backs up, removes the oldest, and verifies the newest`, {
    skip: from === 'postgres' && notOnCitus(noBackup),
  }, async (t) => {
    const vault = await unalteredVault(from);
    const root = join(import.meta.dirname, '../..');
    const written = line.exec(readFileSync(join(root, path), 'utf8'))?.[1];
    assert.ok(written);
    const place = temporaryDirectory(t);
    const program = join(place, 'strongroom');
    const start = `#!/bin/sh\nexec "${process.execPath}" "${root}/bin/strongroom.js" "$@"\n`;
    writeFileSync(program, start, { mode: 0o755 });
    const parent = join(place, 'backups');
    const script = written
      .replaceAll('\\\n', '')
      .replaceAll(/\/opt\/strongroom/g, root)
      .replaceAll(/(?:\/var)?\/backups\/strongroom/g, parent);
    assert.ok(script.includes(`backup --keep 14 ${parent}`));
    const run = (rootKey: Environment) => {
      const environment = {
        ...environmentOf(vault.place, rootKey),
        NODE: process.execPath,
        PATH: `${place}:${process.env['PATH']}`,
      };
      return spawnSync('/bin/sh', ['-ec', script], { env: environment, encoding: 'utf8' });
    };
    const first = run(vault.rootKey);
    assert.equal(first.status, 0, first.stderr);
    assert.match(first.stdout, /is complete and can be restored/);
    const [name] = readdirSync(parent);
    assert.ok(name);
    const olderYears = Array.from({ length: 14 }, (_, index) => `${2001 + index}`);
    for (const year of olderYears) {
      cpSync(join(parent, name), join(parent, `${year}-01-01T00-00-00Z`), { recursive: true });
    }
    renameSync(join(parent, name), join(parent, '2020-01-01T00-00-00Z'));
    const foreign = run(newRootKey());
    assert.equal(foreign.status, 1, 'a backup that the root key does not open');
    assert.match(foreign.stderr, /does not open the vault/);
    const left = readdirSync(parent).sort();
    assert.equal(left.length, 14);
    assert.equal(left[0], '2003-01-01T00-00-00Z', 'the oldest are removed');
  });
}

/** No value that was given to the vault is written down in clear: not on disk, not in a log, not in an error. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { engineOf, type Place } from '../support/engines.ts';
import { startPostgres } from '../support/postgres.ts';
import { environmentOf, spawnVault, withCode } from '../support/process.ts';
import { createScanner, type Found, filesBelow, formsOf } from '../support/scan.ts';
import { sendSensitiveTraffic, type Traffic } from '../support/sensitive-traffic.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/** PostgreSQL told to write down every statement with all its parameters, and every mistake. */
const everyStatementLogged = {
  log_statement: 'all',
  log_min_duration_statement: '0',
  log_parameter_max_length: '-1',
  log_parameter_max_length_on_error: '-1',
  log_error_verbosity: 'verbose',
  // Its temporary files would come and go while the directory is read.
  autovacuum: 'off',
};

/** Characters that `JSON.parse` quotes to each side of a mistake. */
const quotedLength = 10;

interface Written {
  readonly traffic: Traffic;
  /** Everything the vault said. */
  readonly output: string;
  /** The vault's temporary files. */
  readonly temporary: string;
}

/** A vault that logs all it can log, with sensitive traffic, killed so that nothing is tidied up. */
async function runVault(t: TestContext, place: Place): Promise<Written> {
  const temporary = join(temporaryDirectory(t), 'tmp');
  mkdirSync(temporary);
  const vault = await spawnVault(
    t,
    environmentOf(place, withCode, {
      STRONGROOM_LOG_LEVEL: 'debug',
      TMPDIR: temporary,
      SQLITE_TMPDIR: temporary,
    }),
  );
  const traffic = await sendSensitiveTraffic(vault.url);
  await vault.kill();
  return { traffic, output: vault.output(), temporary };
}

/** Fails on any secret; gives what was found of the values that are not secret. */
function scan({ traffic, output, temporary }: Written, directories: readonly string[]): Found[] {
  const find = createScanner([...traffic.secrets, ...traffic.open]);
  const files = [...directories, temporary].flatMap(filesBelow);
  const found = [
    ...files.flatMap(({ path, bytes }) => find(path, bytes)),
    ...find('output', Buffer.from(output)),
  ];
  const leaks = found.filter(({ text }) => traffic.secrets.includes(text));
  assert.deepEqual(leaks, []);
  return found;
}

test('no secret is on the disk of the embedded engine, in temporary files, the output or an error', async (t) => {
  const place = await engineOf('sqlite').place(t);
  const written = await runVault(t, place);
  const found = scan(written, [place.dataDir]);
  for (const text of written.traffic.open) {
    const where = found.filter((one) => one.text === text).map((one) => one.place);
    assert.ok(
      where.some((path) => path.endsWith('-wal')),
      'metadata is found, so secrets would be',
    );
  }
  assert.match(written.output, /"msg":"request refused"/, 'refusals were logged');
  assert.deepEqual(
    createScanner(beginnings(written.traffic))('output', Buffer.from(written.output)),
    [],
  );
  noErrorTells(written.traffic);
});

/** As much of a value as the messages of V8's JSON parser quote of it. Keys of one kind begin alike. */
function beginnings({ secrets }: Traffic): string[] {
  const values = secrets.filter((text) => !/^(?:key_|management)/.test(text));
  return values.map((text) => text.slice(0, quotedLength));
}

function noErrorTells(traffic: Traffic): void {
  const refused = traffic.answers.filter(({ status }) => status >= 400);
  assert.ok(refused.length > 25);
  const find = createScanner([...traffic.secrets, ...beginnings(traffic)]);
  for (const { text, headers } of refused) {
    assert.deepEqual(find(text, Buffer.from(text + JSON.stringify([...headers]))), []);
  }
}

test('no secret is in the files, the write-ahead log or the statement log of PostgreSQL', async (t) => {
  const cluster = await startPostgres({ settings: everyStatementLogged });
  t.after(() => cluster.stop());
  const engine = engineOf('postgres');
  const place = { databaseUrl: await cluster.createDatabase(), dataDir: temporaryDirectory(t) };
  const written = await runVault(t, place);
  const directories: string[] = [];
  for (const databaseUrl of [cluster.url, ...cluster.workers]) {
    const server = { ...place, databaseUrl };
    await engine.run(server, 'checkpoint');
    const [row] = await engine.run(server, 'show data_directory');
    directories.push(dirname(String(row?.['data_directory'])));
  }
  const found = scan(written, [...directories, place.dataDir]);
  for (const kind of [/\/base\//, /\/pg_wal\//, /\/server\.log$/]) {
    for (const text of written.traffic.open) {
      const where = found.filter((one) => one.text === text).map((one) => one.place);
      assert.ok(
        where.some((path) => kind.test(path)),
        `metadata is found in ${kind}`,
      );
    }
  }
});

test('the scan finds every form of a text anywhere in other bytes', () => {
  const texts = ['4000002760003184', 'needle in hay ü'];
  const find = createScanner(texts);
  const forms = texts.flatMap(formsOf);
  assert.ok(forms.length >= 2 * 7);
  for (const { text, form, bytes } of forms) {
    const hay = Buffer.concat([randomBytes(1001), bytes, randomBytes(13)]);
    assert.ok(
      find('hay', hay).some((one) => one.text === text && one.form === form),
      form,
    );
    for (const before of [0, 1, 2, 3]) {
      const plain = Buffer.concat([randomBytes(before), Buffer.from(text), randomBytes(5)]);
      for (const encoding of ['base64', 'base64url', 'hex'] as const) {
        assert.ok(find('hay', Buffer.from(plain.toString(encoding))).length > 0, encoding);
      }
    }
  }
  assert.deepEqual(find('hay', randomBytes(1_000_000)), []);
});

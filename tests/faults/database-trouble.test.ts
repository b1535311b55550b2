/** A PostgreSQL in trouble: 503 in bounded time, nothing half done, and recovery by itself. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chownSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmdirSync,
  statfsSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import pg from 'pg';
import { notOnCitus } from '../support/citus-cluster.ts';
import { startDatabaseLink } from '../support/database-link.ts';
import { engineOf, type Place } from '../support/engines.ts';
import { lockTable } from '../support/locks.ts';
import { type Postgres, startPostgres } from '../support/postgres.ts';
import { environmentOf, spawnVault, untilReady } from '../support/process.ts';
import { rowsOf, verifyLog } from '../support/rows.ts';
import { childrenOf, killIfAlive } from '../support/running.ts';
import { run } from '../support/standby.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { createApplication, type Received, request } from '../support/vault.ts';

const engine = engineOf('postgres');

/** Requests that wait at the same time, in every round of a fault. */
const requestsAtOnce = 40;
/** What a request may cost while the database is away, with all that is queued for it. */
const grownBytesMax = 100 * 2 ** 20;
/** Longer than any single wait of the vault, with room for a slow machine. */
const responseMsMax = 20_000;

const recoveryMsMax = 5_000;

interface Trouble {
  /** How the vault reaches the database; the test looks at it directly. */
  readonly databaseUrl: string;
  readonly place: Place;
  begin(): Promise<void> | void;
  end(): Promise<void> | void;
  /** The fault goes on for at least so long. */
  readonly lastsMs?: number;
  /** Characters of a token that is created. */
  readonly size?: number;
}

async function survives(t: TestContext, trouble: Trouble): Promise<void> {
  const { databaseUrl, place, size = 10 } = trouble;
  const vault = await spawnVault(t, environmentOf({ ...place, databaseUrl }));
  const key = await createApplication(vault.url);
  let count = 0;
  const acknowledged: string[] = [];
  const create = async (): Promise<Received> => {
    const id = `token-${count++}`;
    const data = `${id} `.padEnd(size, 'x');
    const sent = performance.now();
    const body = { id, type: 'token', data };
    const received = await request(`${vault.url}/tokens`, 'POST', { key, body });
    assert.ok(performance.now() - sent < responseMsMax, 'it was kept waiting');
    if (received.status === 201) acknowledged.push(id);
    return received;
  };
  const several = () => Promise.all(Array.from({ length: requestsAtOnce }, create));
  for (const { status, text } of await several()) assert.equal(status, 201, text);
  const bytesBefore = residentBytes(vault.pid);

  const begun = performance.now();
  await trouble.begin();
  let refusals = 0;
  do {
    for (const answer of await several()) {
      if (answer.status === 201) continue;
      refuses(answer);
      refusals += 1;
    }
  } while (refusals === 0 || performance.now() - begun < (trouble.lastsMs ?? 0));
  const grown = residentBytes(vault.pid) - bytesBefore;
  assert.ok(grown < grownBytesMax, `${grown} bytes more than before`);

  await trouble.end();
  const ended = performance.now();
  await untilReady(vault.url);
  // A connection that was being opened when the trouble ended is given up first, and a disk that was full rests.
  let last = await create();
  while (last.status !== 201 && performance.now() - ended < recoveryMsMax) last = await create();
  assert.equal(last.status, 201, last.text);
  const stored = new Set<string>(
    (await rowsOf(engine, place, 'tokens')).map((row) => row.token_id),
  );
  for (const id of acknowledged) assert.ok(stored.has(id), `${id} was acknowledged`);
  const logged = (await verifyLog(engine, place)).filter(
    ({ operation, result, entity_id }) =>
      operation === 'create' && result === 'success' && entity_id?.startsWith('token-'),
  );
  assert.deepEqual(logged.map(({ entity_id }) => entity_id).sort(), [...stored].sort());
  vault.terminate();
  assert.equal((await vault.finished).code, 0);
  t.diagnostic(`${refusals} refusals, ${Math.round(grown / 2 ** 20)} MiB more`);
}

function refuses({ status, headers, body, text }: Received): void {
  // Of a full disk what grows is refused as such.
  if (body.type === 'urn:strongroom:problem:insufficient_storage') {
    assert.equal(status, 507, text);
    return;
  }
  assert.equal(status, 503, text);
  assert.match(headers.get('content-type') ?? '', /^application\/problem\+json/);
  assert.match(body.type, /^urn:strongroom:problem:(?:unavailable|overloaded)$/);
  assert.equal(headers.get('retry-after'), '1');
}

function residentBytes(pid: number): number {
  const pages = Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]);
  return pages * 4096;
}

async function own(t: TestContext, settings = {}): Promise<{ cluster: Postgres; place: Place }> {
  const cluster = await startPostgres({ settings });
  t.after(() => cluster.stop());
  const databaseUrl = await cluster.createDatabase();
  return { cluster, place: { databaseUrl, dataDir: temporaryDirectory(t) } };
}

const urlOf = ({ databaseUrl = '' }: Place) => databaseUrl;

test('a server that is stopped for ten seconds', async (t) => {
  let resume: (() => void) | undefined;
  t.after(() => resume?.());
  const { cluster, place } = await own(t);
  const { pid } = cluster;
  const signal = (name: NodeJS.Signals) => {
    for (const one of [pid, ...childrenOf(pid)]) killIfAlive(one, name);
  };
  await survives(t, {
    databaseUrl: urlOf(place),
    place,
    lastsMs: 10_000,
    begin: () => {
      resume = () => signal('SIGCONT');
      signal('SIGSTOP');
    },
    end: () => {
      resume = undefined;
      signal('SIGCONT');
    },
  });
});

test('a network that holds every connection half-open', async (t) => {
  const { place } = await own(t);
  const link = await startDatabaseLink(t, urlOf(place));
  const { hold: begin, pass: end } = link;
  await survives(t, { databaseUrl: link.url, place, begin, end });
});

test('a network that cuts connections, again and again', async (t) => {
  const { place } = await own(t);
  const link = await startDatabaseLink(t, urlOf(place));
  let timer: NodeJS.Timeout | undefined;
  t.after(() => clearInterval(timer));
  await survives(t, {
    databaseUrl: link.url,
    place,
    begin: () => {
      timer = setInterval(link.cut, 20);
    },
    end: () => clearInterval(timer),
  });
});

test('a slow network slows requests down, and refuses none', async (t) => {
  const { place } = await own(t);
  const link = await startDatabaseLink(t, urlOf(place));
  // As from one continent to another. A request takes some ten round trips, and has five seconds on a busy machine too.
  link.delay(50);
  const vault = await spawnVault(t, environmentOf({ ...place, databaseUrl: link.url }));
  const key = await createApplication(vault.url);
  const body = { type: 'token', data: 'x' };
  const create = () => request(`${vault.url}/tokens`, 'POST', { key, body });
  // Simultaneous first uses of a key meet each other, and are sorted out one by one.
  const created = [await create()];
  created.push(...(await Promise.all(Array.from({ length: 5 * requestsAtOnce }, create))));
  for (const { status, text } of created) assert.equal(status, 201, text);
  assert.equal((await rowsOf(engine, place, 'tokens')).length, created.length);
});

test('a server that has no connection left', async (t) => {
  const { place } = await own(t, { max_connections: '24', superuser_reserved_connections: '0' });
  const taken: pg.Client[] = [];
  t.after(() => Promise.all(taken.map((client) => client.end())));
  const take = async (): Promise<boolean> => {
    const client = new pg.Client({ connectionString: urlOf(place) });
    client.on('error', () => undefined);
    const isIn = await client.connect().then(
      () => true,
      () => false,
    );
    if (isIn) taken.push(client);
    return isIn;
  };
  await survives(t, {
    databaseUrl: urlOf(place),
    place,
    begin: async () => {
      // Those of the vault too, which is then one client among many.
      const end = `select pg_terminate_backend(pid) from pg_stat_activity
        where application_name = 'strongroom'`;
      const first = new pg.Client({ connectionString: urlOf(place) });
      await first.connect();
      taken.push(first);
      while (
        (await first.query(`${end} and pg_backend_pid() <> pid`)).rows.length > 0 ||
        (await take())
      );
    },
    end: async () => {
      await Promise.all(taken.splice(0).map((client) => client.end()));
    },
  });
});

test('statements that take longer than they may', async (t) => {
  const { place } = await own(t);
  const databaseUrl = `${urlOf(place)}?statement_timeout=300`;
  let release: (() => Promise<void>) | undefined;
  await survives(t, {
    databaseUrl,
    place,
    begin: async () => {
      release = await lockTable(t, place, 'logs in exclusive mode');
    },
    end: () => release?.(),
  });
});

test('a database whose disk is full', {
  skip: notOnCitus('a database that has sessions of Citus cannot be moved'),
}, async (t) => {
  const disk = smallDisk(t);
  if (disk === undefined) return t.diagnostic('nobody may mount a small disk here: not tested');
  const { cluster, place } = await own(t);
  const name = new URL(urlOf(place)).pathname.slice(1);
  await run(cluster.url, `create tablespace small location '${disk}/space'`);
  await run(cluster.url, `alter database ${name} set tablespace small`);
  const filler = join(disk, 'filler');
  await survives(t, {
    databaseUrl: urlOf(place),
    place,
    size: 100_000,
    begin: () => {
      const { bavail, bsize } = statfsSync(disk);
      writeFileSync(filler, Buffer.alloc(bavail * bsize));
    },
    end: () => execFileSync('truncate', ['--size=0', filler]) && undefined,
  });
});

/** Of a machine where the test may mount one: the empty directory `space` for PostgreSQL in it. */
function smallDisk(t: TestContext): string | undefined {
  const disk = mkdtempSync(join(tmpdir(), 'strongroom-disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=96m,mode=0755', 'tmpfs', disk], {
      stdio: 'ignore',
    });
  } catch {
    rmdirSync(disk);
    return undefined;
  }
  t.after(() => {
    // PostgreSQL may still have files open there.
    execFileSync('umount', ['--lazy', disk]);
    rmdirSync(disk);
  });
  mkdirSync(join(disk, 'space'));
  chownSync(join(disk, 'space'), 65_534, 65_534);
  return disk;
}

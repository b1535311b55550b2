/**
 * What is written on the disk leaves room to read and delete. Every operation of the description is sent to a vault
 * whose disk is nearly full: it is refused with 507, or it makes no table larger, except for the few that are listed
 * here. A route that is added later is tried as well. The law does not read the list of `src/store/growth.ts`, so it
 * finds a wrong reason there.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { publishedIn } from '../../src/api/openapi/published-operation.ts';
import { shapes } from '../../src/store/tables.ts';
import { notOnCitus } from '../support/citus-cluster.ts';
import { type Engine, onBothEngines, type Place } from '../support/engines.ts';
import { runExamples } from '../support/example-story.ts';
import { verifyLog } from '../support/rows.ts';
import { freeOn, smallDisk } from '../support/small-disk.ts';
import { newTenant } from '../support/tenant.ts';
import {
  createStillClock,
  type Received,
  type Sent,
  sectionsOf,
  startVault,
  type TestVault,
} from '../support/vault.ts';

interface ShortVault {
  /** With room. */
  readonly vault: TestVault;
  /** Sends a request while there is room only for reading and deleting. */
  sendShort(method: string, path: string, sent: Sent): Promise<Received>;
}

/** Enough for all that the vault writes, with what is not yet in its database. */
const roomBytes = 20 * 2 ** 20;
/** Less than the vault keeps free on such a disk. */
const shortBytes = 2 * 2 ** 20;

function fill(file: string, bytes: number): void {
  writeFileSync(file, Buffer.alloc(Math.max(0, bytes)));
}

/** One server, whose disk another program fills and leaves again. */
async function shortOfDisk(t: TestContext, engine: Engine): Promise<ShortVault | undefined> {
  const disk = smallDisk(t, 64);
  if (disk === undefined) return undefined;
  const place: Place = { databaseUrl: undefined, dataDir: join(disk, 'data') };
  const vault = await startVault(t, engine, { place });
  // Most of the disk is taken once: to fill all of it for each request is most of what this test would do.
  fill(join(disk, 'ballast'), freeOn(disk) - roomBytes);
  const other = join(disk, 'other');
  return {
    vault,
    sendShort: async (method, path, sent) => {
      fill(other, freeOn(disk) - shortBytes);
      try {
        return await vault.send(method, path, sent);
      } finally {
        rmSync(other);
      }
    },
  };
}

const fullDisk = 'the-disk-is-full';

/** PostgreSQL says of its disk only that it is full: a second server has just been told so. */
async function shortOfPostgres(t: TestContext, engine: Engine): Promise<ShortVault> {
  const clock = createStillClock();
  const vault = await startVault(t, engine, { clock });
  const { place } = vault;
  const second = await startVault(t, engine, { clock, place });
  const key = await vault.application();
  await engine.run(
    place,
    `create function fail() returns trigger language plpgsql as $$ begin
      if position('${fullDisk}'::bytea in new.token_id) > 0 then raise exception using errcode = '53100'; end if;
      return new;
    end $$`,
  );
  await engine.run(
    place,
    'create trigger fail before insert on tokens for each row execute function fail()',
  );
  return {
    vault,
    sendShort: async (method, path, sent) => {
      // What the other server changed is seen after a second.
      clock.advance(1001);
      // It tries again two seconds after it was told, which is never while the clock stands still.
      const body = { id: `${fullDisk}-${randomUUID()}`, type: 'token', data: 'a' };
      assert.equal((await second.send('POST', '/tokens', { key, body })).status, 507);
      return second.send(method, path, sent);
    },
  };
}

/** Rows of each table, and their bytes. */
type Sizes = ReadonlyMap<string, { readonly rows: number; readonly bytes: number }>;

async function sizesOf(engine: Engine, place: Place): Promise<Sizes> {
  const bytesOf = (columns: readonly string[]) =>
    engine.name === 'postgres'
      ? 'octet_length(t::text)'
      : columns.map((column) => `coalesce(octet_length(${column}), 0)`).join(' + ');
  const counts = Object.entries(shapes).map(
    ([table, { columns }]) =>
      `select '${table}' as name, count(*) as count, coalesce(sum(${bytesOf(columns)}), 0) as bytes from ${table} as t`,
  );
  const rows = await engine.run(place, counts.join(' union all '));
  return new Map(
    rows.map((row) => [
      String(row['name']),
      { rows: Number(row['count']), bytes: Number(row['bytes']) },
    ]),
  );
}

/** Numbers have another digit now and then, and times are noted. */
const sameBytes = 100;

/** Nothing is read or removed without its entry, and events and counters follow from a removal. */
const mayHaveMoreRows: ReadonlySet<string> = new Set([
  'logs',
  'events',
  'event_sequences',
  'stored_bytes',
]);

/** To change them is how access is withdrawn. */
const mayBeLarger: ReadonlySet<string> = new Set(['tenants', 'applications', 'sessions']);

/**
 * Made by other work than the request: deliveries of earlier events, what the log, the jobs and the servers note for
 * themselves.
 */
const madeInBackground: ReadonlySet<string> = new Set([
  'deliveries',
  'webhook_failures',
  'activity',
  'alert_marks',
  'log_pushes',
  'log_index',
  'checkpoints',
  'log_removals',
  'due_work',
  'leases',
  'vault_keys',
]);

function growthBetween(method: string, before: Sizes, after: Sizes): readonly string[] {
  return [...after].flatMap(([table, { rows, bytes }]) => {
    const was = before.get(table) ?? { rows: 0, bytes: 0 };
    if (madeInBackground.has(table) || mayHaveMoreRows.has(table)) return [];
    // The response to a removal is stored, so that the removal can be sent again.
    if (table === 'replies' && method === 'DELETE') return [];
    if (rows > was.rows) return [`a row of ${table}`];
    const isLarger = rows === was.rows && bytes > was.bytes + sameBytes;
    return isLarger && !mayBeLarger.has(table) ? [`bytes of ${table}`] : [];
  });
}

/** As a whole, or of a stream each line. */
function isRefused({ status, text }: Received): boolean {
  return status === 507 || (status === 200 && text.includes('insufficient_storage'));
}

onBothEngines('Room to read and delete', (engine) => {
  test('every operation is refused while room is short, or stores no more', {
    skip:
      engine.name === 'postgres' &&
      notOnCitus('it fills the disk with a trigger, which distributed tables do not have'),
  }, async (t) => {
    const short = await (engine.name === 'sqlite' ? shortOfDisk : shortOfPostgres)(t, engine);
    if (short === undefined) return t.diagnostic('no small disk may be mounted here: not tested');
    const { vault, sendShort } = short;
    const operations = publishedIn(await sectionsOf(vault));
    const refused = new Set<string>();
    const goesOn = new Set<string>();
    let at = -1;

    async function sendOnce(method: string, path: string, sent: Sent): Promise<Received> {
      const operation = operations[at];
      const name = `${method} ${operation?.path}`;
      const before = await sizesOf(engine, vault.place);
      const received = await sendShort(method, path, sent);
      const grown = growthBetween(method, before, await sizesOf(engine, vault.place));
      assert.deepEqual(grown, [], `${name} answered ${received.status}: ${received.text}`);
      if (!isRefused(received)) {
        goesOn.add(name);
        return received;
      }
      assert.ok(method !== 'GET' && method !== 'DELETE', `${name} goes on`);
      if (received.status === 507) {
        assert.equal(received.body.type, 'urn:strongroom:problem:insufficient_storage');
        assert.ok(operation?.problems.has(507), `the description of ${name} says so`);
      }
      refused.add(name);
      return received;
    }

    /** With an idempotency key, whose response would be stored, without, and where both are refused with room. */
    async function send(method: string, path: string, sent: Sent = {}): Promise<Received> {
      const operation = operations[at];
      if (operation?.takesIdempotencyKey) {
        const headers = { ...sent.headers, 'svc-idempotency-key': randomUUID() };
        const keyed = await sendOnce(method, path, { ...sent, headers });
        if (!isRefused(keyed)) return keyed;
      }
      const received = await sendOnce(method, path, sent);
      return isRefused(received) ? vault.send(method, path, sent) : received;
    }

    const tenant = await newTenant(vault);
    at = 0;
    await runExamples({ ...tenant, vault: { ...vault, send } }, operations, async () => {
      at += 1;
    });
    assert.ok(refused.size > 15, `only ${refused.size} were refused`);
    assert.ok(goesOn.size > 30, `only ${goesOn.size} went on`);
    const writing = [...goesOn].filter((name) => !/^(?:GET|DELETE) /.test(name));
    t.diagnostic(`went on: ${writing.join(', ')}`);
    await vault.stop();
    await verifyLog(engine, vault.place);
  });
});

/**
 * A caller pays for processor time, so long work is done in parts that let others pass. This law knows of no route and
 * of no finding: each described route that streams asks for its turn before each part, and takes no more rows into a
 * part than its caller's share has time for.
 */
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { createAuthentication } from '../../src/access/authenticate.ts';
import { createShares } from '../../src/http/limits/shares.ts';
import { paced, pacedParts } from '../../src/http/protocol/paced.ts';
import type { RequestShare } from '../../src/http/protocol/request-share.ts';
import type { StreamRoute } from '../../src/http/protocol/route.ts';
import { engineOf } from '../support/engines.ts';
import { bulk } from '../support/lines.ts';
import { committedPaths, readSource } from '../support/source.ts';
import { newTenant } from '../support/tenant.ts';
import { routesOf, startVault } from '../support/vault.ts';

const nextTurn = () => new Promise((turn) => setImmediate(turn));

const rows = 100;
const rowsOfPart = 7;
const origin = { address: '127.0.0.1', traceId: 'trace', dialect: 'SVC' };

test('each part of a stream waits for its turn, and has as many rows as its share has time for', async (t) => {
  const vault = await startVault(t, engineOf('sqlite'));
  const tenant = await newTenant(vault);
  const line = { type: 'token', data: 'value' };
  await bulk(tenant, new Array(rows).fill(line));
  const { store, tenants } = vault.running.vault;
  const { clock } = vault;
  const authenticate = createAuthentication({
    ...{ store, tenants, clock },
    onFailure: async () => undefined,
  });
  const routes = (await routesOf(vault)).filter((route): route is StreamRoute => 'stream' in route);
  assert.ok(routes.length >= 2, 'imports and exports');
  async function* sent() {
    yield Buffer.from(`${JSON.stringify(line)}\n`.repeat(rows));
  }
  for (const { path, stream } of routes) {
    let turns = 0;
    let asked = 0;
    let received = 0;
    const parts = stream({
      caller: async () => {
        turns += 1;
        return authenticate(tenant.key, origin);
      },
      rowsOfPart: (rowsMax: number) => {
        asked += 1;
        return Math.min(rowsOfPart, rowsMax);
      },
      key: tenant.key,
      count: async (granted) => ({ granted, refusal: undefined }),
      query: {} as never,
      body: sent(),
    });
    for await (const part of parts) {
      assert.ok(Array.isArray(part), path);
      assert.ok(part.length <= rowsOfPart, `${part.length} rows in a part of ${path}`);
      received += part.length;
    }
    assert.ok(received >= rows, `${received} rows of ${path}`);
    assert.ok(asked >= rows / rowsOfPart, `${asked} parts of ${path}`);
    assert.ok(turns >= asked, `${turns} turns for ${asked} parts of ${path}`);
  }
});

const streamsOfKey = 12;
/** How long the request of another key takes, in milliseconds of a clock that only this test moves. */
const shortMs = 16;
const shortParts = shortMs / 4 + 1;

test('beside a request of another key all streams of one key have a quarter of the time', async (t) => {
  const vault = await startVault(t, engineOf('sqlite'));
  const [tenant, another] = [await newTenant(vault), await newTenant(vault)];
  const line = { type: 'token', data: 'value' };
  await bulk(tenant, new Array(rows).fill(line));
  const { store, tenants } = vault.running.vault;
  const { clock } = vault;
  const authenticate = createAuthentication({
    ...{ store, tenants, clock },
    onFailure: async () => undefined,
  });
  const time = { now: 10_000 };
  const shares = createShares(() => time.now);
  const client = { address: '127.0.0.1', url: undefined, isWaitedFor: () => false };
  const shareOf = async (key: string) => {
    const { promise, resolve, reject } = Promise.withResolvers<RequestShare>();
    shares.enter({ ...client, key, bytesMoved: () => 0, cut: () => undefined }, resolve, reject);
    const share = await promise;
    share.settle(await authenticate(key, origin));
    return share;
  };
  async function* sent() {
    for (;;) {
      yield Buffer.from(`${JSON.stringify(line)}\n`);
      await nextTurn();
    }
  }
  const routes = (await routesOf(vault)).filter((route): route is StreamRoute => 'stream' in route);
  for (const { path, stream } of routes) {
    let parts = 0;
    let isOver = false;
    const read = async (share: RequestShare) => {
      const made = stream({
        caller: async () => {
          await share.turnOfPart();
          time.now += 1;
          share.charge(1);
          parts += 1;
          return authenticate(tenant.key, origin);
        },
        rowsOfPart: () => 1,
        key: tenant.key,
        count: async (granted) => ({ granted, refusal: undefined }),
        query: {} as never,
        body: sent(),
      });
      for await (const _ of made) if (isOver) break;
      share.leave();
      share.done();
    };
    const open = await Promise.all(Array.from({ length: streamsOfKey }, () => shareOf(tenant.key)));
    const reading = open.map(read);
    while (parts < streamsOfKey) await nextTurn();
    const other = await shareOf(another.key);
    const before = { parts, now: time.now };
    while (time.now < before.now + shortMs) {
      time.now += 0.5;
      await nextTurn();
    }
    const done = parts - before.parts;
    assert.ok(done <= shortParts, `${done} parts of ${path} in ${shortMs} ms`);
    other.leave();
    other.done();
    isOver = true;
    await Promise.all(reading);
  }
});

/** What reads a body as it arrives, or moves bytes from one connection to another, and who pays for them. */
const pipes: Readonly<Record<string, string>> = {
  'http/egress/egress-server.ts': 'each way of a tunnel through its own `paced`',
  'http/egress/http2-streams.ts':
    'from streams to connections within the process, whose requests pay for what they read and send',
  'http/proxy/handle-call.ts': 'the response of another host through `paced`',
  'http/protocol/streaming.ts':
    'bodies through `pacedParts`, or in parts that each wait for a turn',
  'http/protocol/request-context.ts': 'responses, whose parts were paid for when they were made',
  'outbound/request-body.ts': 'request bodies, which `received` has paced, or the vault has made',
  'proxies/egress/scrub-response.ts': 'responses of another host before they are paced',
  'runtime/root-key-socket.ts': 'the socket of the operator',
  'store/sqlite/restore.ts': 'a command of the operator, who is no caller',
};

test('each place that passes bytes on says who pays for them', () => {
  const places = committedPaths()
    .filter((path) => /^src\/(?!cli\/).+\.ts$/.test(path))
    .filter((path) => /\.pipe\(|\bpipeline\(|\.iterator\(/.test(readSource(path).code));
  assert.deepEqual(
    places.map((path) => path.replace('src/', '')),
    Object.keys(pipes).toSorted(),
  );
});

test('bytes in both directions are charged to their caller, and wait for a turn of each part', async () => {
  const chunk = Buffer.alloc(65_536);
  const chunks = 40;
  const counted = () => {
    const count = { ms: 0, turns: 0 };
    const share = {
      charge: (ms: number) => {
        count.ms += ms;
      },
      turnOfPart: async () => {
        count.turns += 1;
      },
    };
    return { count, share };
  };
  const [up, down] = [counted(), counted()];
  const source = () => Readable.from(new Array(chunks).fill(chunk));
  let received = 0;
  for await (const part of pacedParts(source(), up.share)) received += part.length;
  for await (const part of source().pipe(paced(down.share))) received += part.length;
  assert.equal(received, 2 * chunks * chunk.length);
  assert.deepEqual(up.count, down.count);
  assert.ok(up.count.turns >= chunks && up.count.ms >= 8, JSON.stringify(up.count));
});

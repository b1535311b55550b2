/** What each kind of sender may have of a thread: a flood of one waits, others are served in between. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { duplexPair } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { TLSSocket } from 'node:tls';
import { innerConnection } from '../../src/http/egress/inner-connection.ts';
import {
  addressConnectionsMax,
  connectionLimitsOf,
  descriptorsKeptBack,
  guardConnections,
} from '../../src/http/limits/connections.ts';
import { createReadingCosts } from '../../src/http/limits/reading-costs.ts';
import { createShares, shareLimits } from '../../src/http/limits/shares.ts';
import type { RequestShare } from '../../src/http/protocol/request-share.ts';
import type { Caller } from '../../src/rules/caller.ts';

const nextTurn = () => new Promise((turn) => setImmediate(turn));

const callerOf = (tenant: string, kind: Caller['kind']) =>
  ({ tenant: { id: tenant }, application: `${tenant} ${kind}`, kind }) as unknown as Caller;

const senders = {
  'no key': undefined,
  'a public key': callerOf('hostile', 'public'),
  'a session': callerOf('hostile', 'session'),
  'a private key': callerOf('hostile', 'private'),
  'a management key': callerOf('hostile', 'management'),
} as const;

interface Sender {
  readonly key?: string;
  readonly address: string;
  readonly caller?: Caller;
  readonly url?: string;
}

const idleClient = { isWaitedFor: () => false, bytesMoved: () => 0, cut: () => undefined };

const end = (share: RequestShare | undefined) => {
  share?.leave();
  share?.done();
};

function fixture() {
  const time = { now: 10_000 };
  const shares = createShares(() => time.now);
  const served: string[] = [];
  const refused: string[] = [];
  const open: RequestShare[] = [];
  const enter = (name: string, from: Sender, ms = 0) =>
    shares.enter(
      { ...idleClient, address: from.address, key: from.key, url: from.url },
      (share) => {
        served.push(name);
        open.push(share);
        if (from.caller) share.settle(from.caller);
        share.charge(ms);
      },
      () => refused.push(name),
    );
  const turns = async (count: number) => {
    for (let turn = 0; turn < count; turn += 1) {
      await nextTurn();
      time.now += 1;
      open.splice(0).forEach(end);
    }
  };
  return { time, shares, served, refused, open, enter, turns };
}

const other = {
  key: 'other',
  address: '192.0.2.2',
  caller: callerOf('other', 'private'),
};

for (const [name, caller] of Object.entries(senders)) {
  test(`a flood with ${name} is served behind another tenant, but for a bounded number`, async () => {
    const { served, enter, turns } = fixture();
    const hostile = { address: '192.0.2.1', ...(caller && { key: name, caller }) };
    // Both are known.
    enter('other', other);
    enter('hostile', hostile, 5);
    await turns(2);
    served.length = 0;
    for (let at = 0; at < 500; at += 1) enter('hostile', hostile, 5);
    const begun = served.length;
    for (let at = 0; at < 10; at += 1) enter('other', other, 1);
    await turns(30);
    const last = served.lastIndexOf('other');
    assert.equal(served.filter((one) => one === 'other').length, 10);
    assert.ok(begun <= 40, `${begun} at once`);
    assert.ok(last <= begun + 20, `${last - begun - 10} of the flood before 10 of another`);
  });
}

for (const kind of ['public', 'session'] as const) {
  test(`a flood with a ${kind} key has a quarter of what a private key of its own tenant leaves it`, async () => {
    const { served, enter, turns } = fixture();
    const server = { ...other, caller: callerOf('one', 'private') };
    const visitor = { key: kind, address: '192.0.2.1', caller: callerOf('one', kind) };
    // Both are known.
    enter('server', server);
    enter('visitor', visitor);
    await turns(2);
    served.length = 0;
    for (let at = 0; at < 200; at += 1) {
      enter('visitor', visitor, 2);
      enter('server', server, 2);
    }
    await turns(100);
    const visits = served.slice(0, 100).filter((name) => name === 'visitor').length;
    assert.ok(visits >= 15 && visits <= 35, `${visits} of 100 are the visitor's`);
  });
}

test('a key that turned out not to be valid costs its address, and not its former holder', async () => {
  const { shares, served, open, enter, turns } = fixture();
  enter('leaked', { key: 'leaked', address: '192.0.2.9', caller: callerOf('other', 'private') });
  open[0]?.settle(undefined);
  await turns(1);
  assert.equal(shares.isKnown('192.0.2.9'), true);
  for (let at = 0; at < 200; at += 1) enter('flood', { key: 'leaked', address: '192.0.2.1' }, 50);
  const begun = served.length;
  enter('other', other);
  await turns(3);
  assert.ok(served.slice(begun, begun + 3).includes('other'));
});

test('an address holds no more bytes than its share, and has them back at the end', async () => {
  const { open, enter, turns } = fixture();
  const heldMax = 8 * 1_048_576;
  enter('first', { address: '192.0.2.1' });
  const [first] = open;
  assert.ok(first);
  first.hold(heldMax);
  assert.throws(() => first.hold(1), { code: 'too_many_requests' });
  enter('neighbour', { address: '192.0.2.3' });
  open[1]?.hold(heldMax);
  await turns(1);
  enter('again', { address: '192.0.2.1' });
  open[0]?.hold(heldMax);
});

test('of one address only so many requests without a key are under way', async () => {
  const { served, open, enter, turns } = fixture();
  const underWayMax = 64;
  for (let at = 0; at < underWayMax + 5; at += 1) enter('one', { address: '192.0.2.1' });
  for (let turn = 0; turn < 10; turn += 1) await nextTurn();
  assert.equal(open.length, underWayMax);
  enter('other', { address: '192.0.2.2' });
  for (let turn = 0; turn < 3; turn += 1) await nextTurn();
  assert.equal(served.at(-1), 'other');
  await turns(20);
  assert.equal(served.filter((name) => name === 'one').length, underWayMax + 5);
});

test('an address that floods without a key does not hold up a key that is seen there first', async () => {
  const { served, refused, enter, turns } = fixture();
  for (let at = 0; at < 3_000; at += 1) enter('flood', { address: '192.0.2.1' }, 20);
  const begun = served.length;
  enter('other', { key: 'other', address: '192.0.2.1', caller: callerOf('other', 'private') });
  await turns(60);
  assert.ok(!refused.includes('other'));
  const at = served.indexOf('other');
  assert.ok(at >= 0 && at <= begun + 2, `${at - begun} of the flood before it`);
});

test('calls of proxies that ask for no key are limited by tenant, from however many addresses', async () => {
  const { shares, open, enter } = fixture();
  const proxyOf = (tenant: string) =>
    ({ ...callerOf(tenant, 'private'), anonymous: 'proxy' }) as unknown as Caller;
  const { underWayMax } = shareLimits.visitorsOfTenant;
  for (let at = 0; at < underWayMax; at += 1) {
    enter('proxy', { address: `198.51.100.${at % 100}`, caller: proxyOf('hostile') });
  }
  for (let turn = 0; turn < 30; turn += 1) await nextTurn();
  assert.equal(open.length, underWayMax);
  const from = { ...idleClient, address: '198.51.100.200', key: undefined, url: undefined };
  const settle = (tenant: string) =>
    shares.enter(
      from,
      (share) => {
        try {
          share.settle(proxyOf(tenant));
        } finally {
          end(share);
        }
      },
      () => assert.fail('refused before its proxy was known'),
    );
  assert.throws(() => settle('hostile'), { code: 'too_many_requests' });
  settle('other');
});

test('a key that is sent to a proxy that asks for none does not become that of its tenant', async () => {
  const { served, enter, turns, open } = fixture();
  const proxy = { ...callerOf('hostile', 'private'), anonymous: 'proxy' } as unknown as Caller;
  enter('proxy', { key: 'any', address: '192.0.2.1', caller: proxy });
  await turns(1);
  // It is charged to its address again: the tenant of the proxy may have as much as before.
  const { underWayMax } = shareLimits.address;
  for (let at = 0; at < underWayMax + 1; at += 1)
    enter('key', { key: 'any', address: '192.0.2.1' });
  for (let turn = 0; turn < 10; turn += 1) await nextTurn();
  assert.equal(open.length, underWayMax);
  assert.equal(served.length, underWayMax + 1);
});

test('all networks of one IPv6 site have what a site may have', async () => {
  const { served, open, enter } = fixture();
  for (let at = 0; at < 300; at += 1)
    enter('site', { address: `2001:db8:1:${at.toString(16)}::1` });
  for (let turn = 0; turn < 30; turn += 1) await nextTurn();
  assert.equal(open.length, shareLimits.site.underWayMax);
  enter('other', { address: '2001:db8:2::1' });
  for (let turn = 0; turn < 3; turn += 1) await nextTurn();
  assert.equal(served.at(-1), 'other');
});

test('probes are not held up by requests without a key, and no flood of them holds up keys', async () => {
  const { served, refused, enter, turns } = fixture();
  enter('other', other);
  await turns(1);
  for (let address = 0; address < 100; address += 1) {
    for (let at = 0; at < 100; at += 1) enter('flood', { address: `198.51.100.${address}` }, 20);
  }
  let begun = served.length;
  enter('probe', { address: '192.0.2.1', url: '/readyz' });
  enter('other', other);
  await turns(3);
  assert.ok(served.slice(begun, begun + 4).includes('probe'));
  for (let address = 0; address < 100; address += 1) {
    const sender = { address: `198.51.100.${address}`, url: '/healthz' };
    for (let at = 0; at < 10; at += 1) enter('probes', sender, 20);
  }
  begun = served.length;
  enter('other', other);
  enter('probe', { address: '192.0.2.1', url: '/readyz' });
  await turns(20);
  assert.ok(served.slice(begun, begun + 4).includes('other'));
  assert.ok(!refused.includes('probe') && !refused.includes('other'));
});

test('visitors have no more than their part, also after more addresses than are known apart', async () => {
  const { time, shares, enter, turns } = fixture();
  enter('server', other);
  await turns(5);
  for (let at = 0; at < 90_000; at += 1) {
    time.now += 1;
    shares.connect(`10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`, 0.01);
  }
  enter('server', other);
  for (let at = 0; at < 20; at += 1) shares.connect('192.0.2.7', 50);
  assert.equal(shares.connect('192.0.2.7', 0.01), false);
});

test('servers that keep no connection use nothing of what visitors have', async () => {
  const { shares, served, enter, turns } = fixture();
  enter('other', other);
  await turns(1);
  for (let at = 0; at < 500; at += 1) assert.equal(shares.connect(other.address, 1.5), true);
  enter('other', other);
  await turns(1);
  enter('visitor', { address: '192.0.2.7' });
  assert.equal(served.at(-1), 'visitor');
});

test('what a client that left has had begun keeps its slot until it ends, and gets no turn', async () => {
  const { shares, served, open, enter } = fixture();
  for (let at = 0; at < 64; at += 1) enter('one', { address: '192.0.2.1' });
  for (let turn = 0; turn < 10; turn += 1) await nextTurn();
  assert.equal(open.length, 64);
  for (const share of open) share.leave();
  enter('next', { address: '192.0.2.1' });
  for (let turn = 0; turn < 10; turn += 1) await nextTurn();
  assert.equal(served.at(-1), 'one');
  await assert.rejects(async () => open[0]?.turn(), { code: 'malformed_request' });
  await assert.rejects(async () => open[0]?.turnOfPart(), { code: 'malformed_request' });
  for (const share of open.splice(0)) share.done();
  for (let turn = 0; turn < 10; turn += 1) await nextTurn();
  assert.equal(served.at(-1), 'next');
  assert.equal(shares.isKnown('192.0.2.1'), false);
});

test('connections leave descriptors for children and the database, also on several threads', () => {
  for (const descriptors of [1_024, 4_096, 65_536, 1_048_576]) {
    for (const threads of [1, 2, 8]) {
      const { all = 0, address, knownAddress } = connectionLimitsOf(descriptors, threads);
      assert.ok(all * threads <= descriptors - descriptorsKeptBack);
      assert.ok(address <= addressConnectionsMax && address <= Math.ceil(all / 4));
      assert.ok(knownAddress > address && knownAddress <= all / 2 + 2);
    }
  }
  assert.equal(connectionLimitsOf(1_048_576, 1).address, addressConnectionsMax);
  assert.equal(connectionLimitsOf(undefined, 1).all, undefined);
});

/** Connections that a test opens, each with a request; true for one that got a response. */
async function listen(t: TestContext, server: Server) {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const sockets: Socket[] = [];
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const opens = async (localAddress: string) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress });
    sockets.push(socket);
    socket.on('error', () => undefined);
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    return new Promise<boolean>((resolve) => {
      socket.once('data', () => resolve(true)).once('close', () => resolve(false));
    });
  };
  return { opens, sockets };
}

test('one address has so many connections; known addresses and trusted proxies have more', async (t) => {
  const server = createServer((_request, response) => response.end());
  let isKnown = false;
  let trusted = '';
  guardConnections(server, {
    limits: { all: 100, address: 3, knownAddress: 5 },
    shares: { connect: () => true, isKnown: () => isKnown },
    isTls: false,
    isTrusted: (address) => address === trusted,
    isIdle: () => true,
    requestsOf: () => 0,
    unpaidMs: () => 0,
    log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
  });
  const { opens } = await listen(t, server);
  const opened = async (count: number, address: string) => {
    let taken = 0;
    for (let at = 0; at < count; at += 1) if (await opens(address)) taken += 1;
    return taken;
  };
  assert.equal(server.maxConnections, 100);
  assert.equal(await opened(5, '127.0.0.2'), 3);
  assert.equal(await opened(2, '127.0.0.3'), 2);
  isKnown = true;
  assert.equal(await opened(5, '127.0.0.2'), 2);
  trusted = '127.0.0.2';
  assert.equal(await opened(5, '127.0.0.2'), 5);
  assert.equal(await opened(5, '127.0.0.4'), 5);
});

test('a connection within another one, or within the process, takes no place of its own, and is served', async (t) => {
  const server = createServer((_request, response) => response.end());
  guardConnections(server, {
    limits: { all: 16, address: 1, knownAddress: 1 },
    shares: { connect: () => true, isKnown: () => true },
    isTls: false,
    isTrusted: () => false,
    isIdle: () => true,
    requestsOf: () => 0,
    unpaidMs: () => 0,
    log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
  });
  const { opens } = await listen(t, server);
  assert.equal(await opens('127.0.0.2'), true);
  assert.equal(await opens('127.0.0.2'), false);
  for (let count = 0; count < 2; count += 1) {
    const { client, server: inner } = innerConnection('127.0.0.2');
    server.emit('connection', inner);
    client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    assert.match(String((await once(client, 'data'))[0]), /^HTTP\/1\.1 200/);
    const [below] = duplexPair();
    const above = new TLSSocket(below as never, { isServer: true });
    t.after(() => above.destroy());
    server.emit('connection', above);
    assert.equal(above.destroyed, false);
  }
});

test('where a server has all the connections that it takes, the network that has most makes room', async (t) => {
  const server = createServer((_request, response) => response.end());
  const known = new Set<string>();
  const busy = new Set<number | undefined>();
  guardConnections(server, {
    limits: { all: 16, address: 10, knownAddress: 12 },
    shares: { connect: () => true, isKnown: (address) => known.has(address) },
    isTls: false,
    isTrusted: (address) => address === '127.0.0.9',
    isIdle: (socket) => !busy.has(socket.remotePort),
    requestsOf: () => 0,
    unpaidMs: () => 0,
    log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
  });
  const { opens, sockets } = await listen(t, server);
  const left = () => sockets.filter((socket) => !socket.destroyed).length;
  for (let at = 0; at < 10; at += 1) assert.equal(await opens('127.0.0.2'), true);
  for (let at = 0; at < 4; at += 1) assert.equal(await opens('127.0.0.3'), true);
  // No other address has more than it has itself.
  assert.equal(await opens('127.0.0.2'), false);
  for (const address of ['127.0.0.4', '127.0.0.5', '127.0.0.9']) {
    assert.equal(await opens(address), true, address);
  }
  assert.equal(left(), 14);
  assert.deepEqual(
    sockets.slice(0, 4).map(({ destroyed }) => destroyed),
    [true, true, true, false],
  );
  known.add('127.0.0.2').add('127.0.0.6');
  assert.equal(await opens('127.0.0.6'), true);
  assert.equal(sockets[10]?.destroyed, true, 'of those that are not known, the one that has most');
  assert.equal(left(), 14);
});

test('a connection with a request is ended for others only where its site has much more', async (t) => {
  const server = createServer((_request, response) => response.end());
  const busy = new Set<number | undefined>();
  guardConnections(server, {
    limits: { all: 16, address: 14, knownAddress: 14 },
    shares: { connect: () => true, isKnown: () => false },
    isTls: false,
    isTrusted: () => false,
    isIdle: (socket) => !busy.has(socket.remotePort),
    requestsOf: () => 0,
    unpaidMs: () => 0,
    log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
  });
  const { opens, sockets } = await listen(t, server);
  for (let at = 0; at < 14; at += 1) assert.equal(await opens('127.0.0.2'), true);
  for (const { localPort } of sockets.slice(0, 13)) busy.add(localPort);
  assert.equal(await opens('127.0.0.3'), true);
  assert.equal(sockets[13]?.destroyed, true, 'the idle one');
  const left = () => sockets.slice(0, 13).filter(({ destroyed }) => !destroyed).length;
  // 13 are more than four times the 2 that the other site would then have, and 12 not more than four times 3.
  assert.equal(await opens('127.0.0.3'), true);
  assert.equal(left(), 12);
  assert.equal(await opens('127.0.0.3'), false);
  assert.equal(left(), 12);
});

test('what bytes cost that are no request is charged to their addresses, which drip no longer', async (t) => {
  const { shares, enter, turns } = fixture();
  enter('other', other);
  await turns(1);
  const server = createServer((_request, response) => response.end());
  const requests = new Map<number | undefined, number>();
  server.prependListener('request', ({ socket }) => {
    requests.set(socket.remotePort, (requests.get(socket.remotePort) ?? 0) + 1);
  });
  let unpaid = 0;
  const ended: string[] = [];
  const sockets = new Map<Socket, string>();
  const reading = createReadingCosts({
    unpaidMs: () => unpaid,
    charge: shares.connect,
    requestsOf: (socket) => requests.get(socket.remotePort) ?? 0,
    isIdle: () => true,
    end: (socket) => ended.push(sockets.get(socket) ?? ''),
  });
  let received = Promise.withResolvers<void>();
  server.on('connection', (socket) => {
    const address = socket.remoteAddress ?? '';
    sockets.set(socket, address);
    reading.watch(socket, address);
  });
  const { opens, sockets: clients } = await listen(t, server);
  for (const address of ['127.0.0.2', '127.0.0.3']) assert.equal(await opens(address), true);
  const [dripping, asking] = clients as [Socket, Socket];
  const dripped = () => [...sockets.keys()].reduce((sum, socket) => sum + socket.bytesRead, 0);
  for (let check = 0; check < 8; check += 1) {
    const before = dripped();
    received = Promise.withResolvers();
    asking.once('data', () => received.resolve());
    asking.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    dripping.write(check === 0 ? 'GET / HTTP/1.1\r\na: ' : 'x');
    await received.promise;
    while (dripped() < before + 28) await nextTurn();
    unpaid += 60;
    reading.check();
    enter('other', other);
  }
  assert.ok(ended.length > 0 && ended.every((address) => address === '127.0.0.2'), String(ended));
});

/** Pushing the log: a collector gets every entry at least once, whatever fails, and whoever is killed. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { createServer, type TLSSocket } from 'node:tls';
import { formatEntry, parseLine } from '../../src/audit/records.ts';
import { newAuthority } from '../../src/keys/temporary-authority.ts';
import type { ChainedEntry } from '../../src/store/log-chain/entries.ts';
import { pushingTo } from '../support/collector.ts';
import { answer, type Destination, hang, startDestination } from '../support/destination.ts';
import { type Engine, onBothEngines } from '../support/engines.ts';
import { mixedTraffic, readParts, verifyParts } from '../support/logs.ts';
import { nextLook } from '../support/poll.ts';
import { environmentOf, runCommand, spawnVault } from '../support/process.ts';
import { type Lender, temporaryDirectory } from '../support/temporary.ts';
import { newTenant } from '../support/tenant.ts';
import { createApplication, startVault } from '../support/vault.ts';

type Place = Awaited<ReturnType<Engine['place']>>;

function entriesIn(text: string): ChainedEntry[] {
  const lines = text.split('\n').filter((line) => line !== '');
  return lines.flatMap((line, index) => {
    const record = parseLine(line, index + 1);
    assert.notEqual(record.kind, 'unreadable', line);
    return record.kind === 'entries' ? record.entries : [];
  });
}

async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await nextLook();
}

/** What a collector accepted, each entry once. */
class Collected {
  readonly #entries = new Map<string, ChainedEntry>();

  add(entries: readonly ChainedEntry[]): void {
    for (const one of entries) {
      const place = `${one.tenant_id} ${one.stream_id} ${one.seq}`;
      const known = this.#entries.get(place);
      // What is sent again is the same.
      if (known) assert.equal(formatEntry(known), formatEntry(one));
      else this.#entries.set(place, one);
    }
  }

  /** Resolves once it has what the database has; the vault may be writing. */
  async untilAll(place: Place): Promise<void> {
    await until(async () => {
      const { entries } = await readParts(place);
      return entries.length > 0 && entries.every((one) => this.#has(one));
    });
  }

  #has(entry: ChainedEntry): boolean {
    const known = this.#entries.get(`${entry.tenant_id} ${entry.stream_id} ${entry.seq}`);
    return known !== undefined && formatEntry(known) === formatEntry(entry);
  }

  /** In the order of their streams. */
  get entries(): readonly ChainedEntry[] {
    return [...this.#entries.values()].sort(
      (one, other) => one.stream_id.localeCompare(other.stream_id) || one.seq - other.seq,
    );
  }
}

/** Accepts batches of a few entries at most, and fails every other time. */
function difficult(destination: Destination, collected: Collected, entriesMax: number): void {
  let calls = 0;
  destination.behave(async (exchange) => {
    const entries = entriesIn((await exchange.received).body.toString());
    calls += 1;
    if (entries.length > entriesMax) return answer(413)(exchange);
    if (calls % 2 === 0) return answer(503)(exchange);
    collected.add(entries);
    // It has the entries, and the vault does not learn of it.
    if (calls % 5 === 0) return exchange.reset();
    return answer(200)(exchange);
  });
}

onBothEngines('the push of the log', (engine) => {
  test('an https collector that fails, resets, and takes few at once gets every entry', async (t) => {
    const destination = await startDestination(t);
    const collected = new Collected();
    difficult(destination, collected, 40);
    const environment = pushingTo(t, `${destination.url}/log`, destination.authority);
    const secret = join(temporaryDirectory(t), 'authorization');
    writeFileSync(secret, 'Bearer of-the-test\n', { mode: 0o600 });
    const vault = await startVault(t, engine, {
      environment: { ...environment, STRONGROOM_LOG_EXPORT_AUTHORIZATION_FILE: secret },
    });
    await mixedTraffic(vault, 2);
    await collected.untilAll(vault.place);
    await vault.stop();
    const { entries } = collected;
    assert.deepEqual(verifyParts({ statements: [], entries }).findings, []);
    const [request] = destination.requests;
    assert.equal(request?.method, 'POST');
    assert.equal(request?.url, '/log');
    const headers = request?.headers.map((one) => one.toLowerCase()) ?? [];
    assert.ok(headers.includes('application/x-ndjson'));
    assert.ok(headers.includes('bearer of-the-test'));
  });

  test('a tenant that writes a lot keeps no entry of another one waiting', async (t) => {
    const destination = await startDestination(t);
    const released = Promise.withResolvers<void>();
    const collected = new Collected();
    const batches: ChainedEntry[][] = [];
    destination.behave(async (exchange) => {
      const entries = entriesIn((await exchange.received).body.toString());
      await released.promise;
      batches.push(entries);
      collected.add(entries);
      return answer(200)(exchange);
    });
    const environment = pushingTo(t, `${destination.url}/log`, destination.authority);
    const vault = await startVault(t, engine, { environment });
    const busy = await newTenant(vault);
    const quiet = await newTenant(vault);
    const many = Array.from({ length: 1_000 }, () => ({ type: 'token', data: 'x' }));
    for (const _ of [1, 2, 3, 4]) {
      const sent = { key: busy.key, body: many };
      assert.equal((await busy.send('POST', '/tokenize', sent)).status, 200);
    }
    const { id } = (await quiet.token({ type: 'token', data: 'x' })).body;
    released.resolve();
    await collected.untilAll(vault.place);
    const at = batches.findIndex((batch) => batch.some(({ entity_id }) => entity_id === id));
    const before = batches.slice(0, at).flat();
    const ofBusy = before.filter(({ tenant_id }) => tenant_id === busy.id).length;
    assert.ok(ofBusy <= 2_000, `${ofBusy} entries went before`);
  });

  test('an entry that the collector refuses holds up no other tenant, and is sent once it is taken', async (t) => {
    const destination = await startDestination(t);
    const collected = new Collected();
    let refuses = true;
    let refusals = 0;
    destination.behave(async (exchange) => {
      const text = (await exchange.received).body.toString();
      if (refuses && text.includes('union select')) {
        refusals += 1;
        return answer(403)(exchange);
      }
      collected.add(entriesIn(text));
      return answer(200)(exchange);
    });
    const environment = pushingTo(t, `${destination.url}/log`, destination.authority);
    const vault = await startVault(t, engine, { environment });
    const [refused, other] = [await newTenant(vault), await newTenant(vault)];
    const { id } = (await refused.token({ id: 'union select', type: 'token', data: 'x' })).body;
    await until(() => refusals > 0);
    const { id: after } = (await other.token({ type: 'token', data: 'x' })).body;
    const has = (entity: string) => collected.entries.some(({ entity_id }) => entity_id === entity);
    await until(() => has(after));
    assert.ok(!has(id));
    refuses = false;
    vault.clock.advance(60_000);
    await until(() => has(id));
    await collected.untilAll(vault.place);
  });

  test('a server that is killed while its collector is down loses nothing', async (t) => {
    const place = await engine.place(t);
    const destination = await startDestination(t);
    destination.behave(answer(500));
    const environment = environmentOf(
      place,
      pushingTo(t, `${destination.url}/log`, destination.authority),
    );
    const first = await spawnVault(t, environment);
    await Promise.all(Array.from({ length: 5 }, () => createApplication(first.url)));
    await until(() => destination.requests.length > 0);
    await first.kill();
    // Written by no server.
    assert.equal((await runCommand(['tenant', 'create', '--name', 'other'], environment)).code, 0);
    const collected = new Collected();
    destination.behave(async (exchange) => {
      collected.add(entriesIn((await exchange.received).body.toString()));
      return answer(200)(exchange);
    });
    const second = await spawnVault(t, environment);
    await createApplication(second.url);
    await collected.untilAll(place);
    const before = destination.requests.length;
    second.terminate();
    await second.finished;
    // What was confirmed does not come again.
    const third = await spawnVault(t, environment);
    await createApplication(third.url);
    await collected.untilAll(place);
    const again = destination.requests
      .slice(before)
      .flatMap(({ body }) => entriesIn(body.toString()));
    assert.ok(again.length < 30, `${again.length} entries came again`);
  });

  test('a place that was moved outside the vault hides nothing from the collector', async (t) => {
    const place = await engine.place(t);
    const destination = await startDestination(t);
    const collected = new Collected();
    const accept: Parameters<Destination['behave']>[0] = async (exchange) => {
      collected.add(entriesIn((await exchange.received).body.toString()));
      return answer(200)(exchange);
    };
    destination.behave(accept);
    const environment = environmentOf(
      place,
      pushingTo(t, `${destination.url}/log`, destination.authority),
    );
    const first = await spawnVault(t, environment);
    await createApplication(first.url);
    await collected.untilAll(place);
    const pushed = () => engine.run(place, 'select * from log_pushes');
    await until(async () => (await pushed()).length > 0);
    destination.behave(answer(500));
    await createApplication(first.url);
    await first.kill();
    await engine.run(place, 'update log_pushes set seq = 1000000');
    destination.behave(accept);
    await spawnVault(t, environment);
    await collected.untilAll(place);
  });

  test('a collector that never responds holds up neither requests nor the stop', async (t) => {
    const destination = await startDestination(t);
    destination.behave(hang);
    const environment = pushingTo(t, `${destination.url}/log`, destination.authority);
    const vault = await spawnVault(t, environmentOf(await engine.place(t), environment));
    await until(() => destination.sockets.length > 0);
    await createApplication(vault.url);
    vault.terminate();
    assert.equal((await vault.finished).code, 0);
  });

  test('a collector with a certificate of somebody else gets nothing, and the alert says so', async (t) => {
    const destination = await startDestination(t);
    const environment = pushingTo(t, `${destination.url}/log`, newAuthority());
    const place = await engine.place(t);
    const vault = await spawnVault(t, environmentOf(place, environment));
    await createApplication(vault.url);
    const quota = ['tenant', 'quota', '--tenant', 'default', '--set', 'alert_export_lag=1s'];
    const { code, stderr } = await runCommand(quota, environmentOf(place, environment));
    assert.equal(code, 0, stderr);
    const metrics = async () => (await fetch(`${vault.url}/metrics`)).text();
    await until(async () => /log_export_failures_total [1-9]/.test(await metrics()));
    assert.match(await metrics(), /strongroom_log_export_lag_seconds \d/);
    assert.equal(destination.requests.length, 0);
    await until(async () =>
      (await readParts(place)).entries.some(
        ({ entity_type, operation }) => entity_type === 'alert' && operation === 'stalled',
      ),
    );
    assert.match(await metrics(), /strongroom_alerts_total\{kind="stalled"\} [1-9]/);
  });

  test('syslog over TLS: framed messages of RFC 5424, again after a connection that broke', async (t) => {
    const collected = new Collected();
    const receiver = await startSyslog(t, collected);
    const vault = await startVault(t, engine, {
      environment: pushingTo(t, `syslog+tls://localhost:${receiver.port}`, receiver.authority),
    });
    await mixedTraffic(vault, 1);
    await collected.untilAll(vault.place);
    await vault.stop();
    assert.ok(receiver.connections > 1, 'the first connection broke');
    const { entries } = collected;
    assert.deepEqual(verifyParts({ statements: [], entries }).findings, []);
  });
});

const message =
  /^<(\d+)>1 (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) (\S+) strongroom (\d+) (\S+) - (\{.*\})$/;

/** The messages of whole frames (RFC 6587, octet counting). */
function messagesIn(bytes: string): string[] {
  const found: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    const [, digits = ''] = /^([1-9]\d*) /.exec(bytes.slice(at, at + 8)) ?? [];
    assert.notEqual(digits, '', 'a frame begins with its length');
    const begin = at + digits.length + 1;
    at = begin + Number(digits);
    assert.ok(at <= bytes.length, 'a frame is whole');
    found.push(bytes.slice(begin, at));
  }
  return found;
}

interface SyslogServer {
  readonly port: number;
  readonly authority: { readonly cert: string };
  readonly connections: number;
}

/** Breaks the first connection in the middle, and takes what comes on others. */
async function startSyslog(t: Lender, collected: Collected): Promise<SyslogServer> {
  const authority = newAuthority();
  let connections = 0;
  const server = createServer(authority.issue('collector'), (socket: TLSSocket) => {
    connections += 1;
    const isFirst = connections === 1;
    const parts: Buffer[] = [];
    socket.on('error', () => socket.destroy());
    socket.on('data', (part: Buffer) => {
      parts.push(part);
      if (isFirst) socket.destroy();
    });
    socket.on('end', () => {
      for (const one of messagesIn(Buffer.concat(parts).toString('latin1'))) {
        const [, priority, time, , , id, json = ''] = message.exec(one) ?? assert.fail(one);
        const [entry] = entriesIn(json);
        assert.ok(entry);
        assert.equal(time, new Date(entry.created_at).toISOString());
        assert.equal(id, `${entry.entity_type}.${entry.operation}`);
        assert.equal(priority, entry.result === 'success' ? '110' : '108');
        collected.add([entry]);
      }
    });
  });
  t.after(() => void server.close());
  server.listen(0);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    authority,
    get connections() {
      return connections;
    },
  };
}

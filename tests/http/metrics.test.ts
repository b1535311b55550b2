/** What operators measure: the store, refusals, jobs and places; on an address of their own where configured. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { writeCertificate } from '../support/certificate.ts';
import { engineOf, onBothEngines } from '../support/engines.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { newTenant } from '../support/tenant.ts';
import { request, startVault, type TestVault } from '../support/vault.ts';

/** The values of a metric by its labels. */
function valuesIn(text: string, name: string): Map<string, number> {
  const lines = text.split('\n').filter((line) => new RegExp(`^${name}[{ ]`).test(line));
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(name.length, at), Number(line.slice(at + 1))];
    }),
  );
}

const metricsAt = async (url: string) => (await request(url, 'GET')).text;
const exposed = (vault: TestVault) => metricsAt(`${vault.url}/metrics`);

const ownAddress = { STRONGROOM_METRICS_ADDRESS: '127.0.0.1:0' };

test('metrics 404: by another spelling of their path, which a proxy in front might let through', async (t) => {
  const vault = await startVault(t, engineOf('sqlite'));
  assert.equal((await request(`${vault.url}/metrics?a=b`, 'GET')).status, 200);
  for (const path of ['/metrics/', '/%6detrics', '/metric%73?a=b', '/%6Detrics/']) {
    const { status, text } = await request(vault.url + path, 'GET');
    assert.equal(status, 404, path);
    assert.ok(!text.includes('strongroom_'), path);
  }
});

test('metrics 404: on an address that others reach; then they are on one of their own, or nowhere', async (t) => {
  const beyond = { STRONGROOM_HOST: '0.0.0.0', STRONGROOM_TLS: 'off' };
  const nowhere = await startVault(t, engineOf('sqlite'), { environment: beyond });
  assert.equal((await request(`${nowhere.url}/metrics`, 'GET')).status, 404);
  assert.equal('/metrics' in (await nowhere.send('GET', '/openapi.json')).body.paths, false);
  const apart = await startVault(t, engineOf('sqlite'), {
    environment: { ...beyond, ...ownAddress },
  });
  assert.equal((await request(`${apart.url}/metrics`, 'GET')).status, 404);
  assert.match(await metricsAt(apart.running.metricsUrl ?? ''), /^strongroom_build_info/m);
});

onBothEngines('metrics', (engine) => {
  test('count what was committed, in which groups, and how long it waited and took', async (t) => {
    const vault = await startVault(t, engine);
    const key = await vault.application();
    const before = valuesIn(await exposed(vault), 'strongroom_commits_total');
    const created = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        vault.send('POST', '/tokens', { key, body: { type: 'token', data: `value ${index}` } }),
      ),
    );
    assert.ok(created.every(({ status }) => status === 201));
    const committed = '{outcome="committed"}';
    const committedIn = (text: string) =>
      (valuesIn(text, 'strongroom_commits_total').get(committed) ?? 0) -
      (before.get(committed) ?? 0);
    let text = await exposed(vault);
    // A group is counted when all of it is done, and some of it may be responded to before that.
    for (let looks = 0; looks < 100 && committedIn(text) < 20; looks++) text = await exposed(vault);
    const commits = valuesIn(text, 'strongroom_commits_total');
    // The first use of a key, and what its alerts count, may be among them.
    const count = committedIn(text);
    assert.ok(count >= 20 && count <= 25, `${count}`);
    const [sum] = valuesIn(text, 'strongroom_commit_group_changes_sum').values();
    assert.equal(
      sum,
      [...commits.values()].reduce((a, b) => a + b, 0),
    );
    const [groups] = valuesIn(text, 'strongroom_commit_group_changes_count').values();
    for (const name of ['strongroom_commit_wait_seconds', 'strongroom_commit_duration_seconds']) {
      assert.deepEqual([...valuesIn(text, `${name}_count`).values()], [groups]);
    }
    assert.deepEqual([...valuesIn(text, 'strongroom_queue_changes').values()], [0]);
    assert.deepEqual([...valuesIn(text, 'strongroom_queue_oldest_seconds').values()], [0]);
    const pool = valuesIn(text, 'strongroom_pool_waiting');
    assert.equal(pool.size, engine.name === 'postgres' ? 1 : 0);
  });

  test('count refusals for keys and limits', async (t) => {
    const limited = { STRONGROOM_RATE_LIMITS: 'legacy-2024' };
    const vault = await startVault(t, engine, { environment: limited });
    await vault.send('GET', '/tokens/x', { key: 'key_test_pvt_nonsense' });
    const tenant = await newTenant(vault);
    let status = 0;
    for (let sent = 0; sent < 2_000 && status !== 429; sent += 50) {
      const all = await Promise.all(
        Array.from({ length: 50 }, () => tenant.send('GET', '/tokens')),
      );
      status = all.find((one) => one.status === 429)?.status ?? 0;
    }
    assert.equal(status, 429);
    const text = await exposed(vault);
    assert.deepEqual([...valuesIn(text, 'strongroom_authentication_failures_total').values()], [1]);
    const [refused = 0] = valuesIn(text, 'strongroom_rate_limited_total').values();
    assert.ok(refused > 0);
  });

  test('say how old checkpoints are, how late expiry is, and what room is left', async (t) => {
    const vault = await startVault(t, engine);
    const age = async (name: string) => [...valuesIn(await exposed(vault), name).values()];
    const names = ['strongroom_checkpoint_age_seconds', 'strongroom_expiry_lag_seconds'];
    for (const name of names) {
      const [young = -1] = await age(name);
      assert.ok(young >= 0 && young < 600, `${name} ${young}`);
    }
    vault.clock.advance(3_600_000);
    for (const name of names) {
      const [old = -1] = await age(name);
      assert.ok(old >= 3_600, `${name} ${old}`);
    }
    const text = await exposed(vault);
    const done = valuesIn(text, 'strongroom_job_last_success_timestamp_seconds');
    assert.ok(done.has('{name="expire tokens"}') && done.has('{name="sign log checkpoints"}'));
    const [free = 0] = valuesIn(text, 'strongroom_disk_free_bytes').values();
    const [size = 0] = valuesIn(text, 'strongroom_disk_size_bytes').values();
    assert.ok(free > 0 && free <= size);
    const floor = [...valuesIn(text, 'strongroom_disk_free_min_bytes').values()];
    // Nobody knows how much is free on the disk of PostgreSQL.
    if (engine.name === 'postgres') assert.deepEqual(floor, []);
    else assert.ok((floor[0] ?? 0) > 0 && (floor[0] ?? 0) <= 2 ** 30);
    for (const absent of ['log_export_waiting_characters', 'certificate_end_timestamp_seconds']) {
      assert.equal(valuesIn(text, `strongroom_${absent}`).size, 0, absent);
    }
  });

  test('name the database server without its user and password, and say that it is up', async (t) => {
    const place = await engine.place(t);
    const url = place.databaseUrl === undefined ? undefined : new URL(place.databaseUrl);
    if (url) url.password = 'not-for-metrics';
    const vault = await startVault(t, engine, { place: { ...place, databaseUrl: url?.href } });
    const text = await exposed(vault);
    const expected = url ? [[`{host="${url.host}"}`, 1]] : [];
    assert.deepEqual([...valuesIn(text, 'strongroom_database_host_up')], expected);
    assert.deepEqual([...valuesIn(text, 'strongroom_database_host_writable')], expected);
    assert.ok(!text.includes('not-for-metrics'));
  });

  test('are on their own address alone where there is one, with the tokens of each tenant when asked', async (t) => {
    const vault = await startVault(t, engine, { environment: ownAddress });
    const url = vault.running.metricsUrl ?? '';
    assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/metrics$/);
    assert.equal((await vault.send('GET', '/metrics')).status, 404);
    const { paths } = (await vault.send('GET', '/openapi.json')).body;
    assert.equal('/metrics' in paths, false);
    const one = await newTenant(vault);
    const other = await newTenant(vault);
    await one.token({ type: 'token', data: 'first' });
    await one.token({ type: 'token', data: 'second' });
    await other.token({ type: 'card', data: { number: '4242424242424242' } });
    const plain = await request(url, 'GET');
    assert.equal(plain.status, 200);
    assert.match(plain.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/);
    assert.equal(valuesIn(plain.text, 'strongroom_tokens').size, 0);
    const counts = valuesIn(await metricsAt(`${url}?tokens=by-tenant`), 'strongroom_tokens');
    assert.equal(counts.get(`{tenant="${one.id}"}`), 2);
    assert.equal(counts.get(`{tenant="${other.id}"}`), 1);
    const origin = new URL(url).origin;
    assert.equal((await request(`${origin}/tokens`, 'GET')).status, 404);
    assert.equal((await request(url, 'POST')).status, 405);
    await vault.stop();
    await assert.rejects(request(url, 'GET'));
  });
});

onBothEngines('metrics of a vault with TLS', (engine) => {
  test('say when its certificate ends', async (t) => {
    const { certFile, keyFile } = writeCertificate(temporaryDirectory(t));
    const tls = { STRONGROOM_TLS_CERT: certFile, STRONGROOM_TLS_KEY: keyFile };
    const environment = { ...ownAddress, ...tls };
    const vault = await startVault(t, engine, { environment });
    const text = await metricsAt(vault.running.metricsUrl ?? '');
    const [end = 0] = valuesIn(text, 'strongroom_certificate_end_timestamp_seconds').values();
    assert.ok(end * 1000 > Date.now());
  });
});

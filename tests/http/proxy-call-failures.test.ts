/** Calls that fail: each failure of the vault is a proxy_error that says what went wrong. */
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { after, test } from 'node:test';
import {
  answer,
  hang,
  lyingAboutLength,
  raw,
  resetAfter,
  startDestination,
} from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { createProxy } from '../support/proxies.ts';
import { proxyOf, startCalled } from '../support/proxy-calls.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';

const { destination, url, environment } = await startCalled({ after });
const mutual = await startCalled({ after }, { clientCertificates: true });
const untrusted = await startDestination({ after });

/** A port at which nobody listens. */
async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

const closed = await closedPort();
const allow = [
  url,
  mutual.url,
  `https://localhost:${closed}`,
  `https://localhost:${untrusted.port}`,
]
  .map((one) => new URL(one).host)
  .join(',');

onBothEngines('Failures of proxy calls', (engine) => {
  const newTenant = tenantsOf(engine, {
    environment: { ...environment, STRONGROOM_OUTBOUND_ALLOW: `${allow},nowhere.invalid:443` },
  });

  const fails = async (tenant: TestTenant, given: object, [status, detail]: [number, RegExp]) => {
    const call = await proxyOf(tenant, { ...given });
    const received = await call('GET', '/s3cret-path', { headers: { 'x-a': 's3cret' } });
    assert.equal(received.status, status, received.text);
    assert.equal(received.headers.get('svc-proxy-destination-status'), null);
    assert.match(received.headers.get('content-type') ?? '', /^application\/json/);
    const { type, title, status: said, detail: told, ...rest } = received.body.proxy_error;
    assert.ok(type && title);
    assert.equal(said, status);
    assert.match(told, detail);
    assert.deepEqual(rest, {});
    assert.doesNotMatch(received.text, /s3cret|localhost/);
    const entries = (await tenant.rows('logs')).filter(({ entity_id }) => entity_id === call.id);
    const failed = entries.filter(({ result }) => result === 'failed');
    assert.equal(failed.length, 1);
    assert.match(failed[0]?.message ?? '', /^Proxy invoke failed: GET, /);
    assert.doesNotMatch(failed[0]?.message ?? '', /s3cret/);
  };

  test('408: a destination that does not respond in time', async () => {
    destination.behave(hang);
    await fails(await newTenant(), { destination_url: url, timeout: 1 }, [408, /within 1 s/]);
  });

  test('502: name, connection, TLS, reset and nonsense are told apart', async () => {
    const tenant = await newTenant();
    await fails(tenant, { destination_url: 'https://nowhere.invalid' }, [
      502,
      /name cannot be resolved/,
    ]);
    const lines = tenant.vault.logged.filter(({ message }) => message.startsWith('request failed'));
    assert.deepEqual(
      lines.map(({ message }) => message),
      ['request failed at another host or in code'],
      'a mistyped host of a tenant is no error of the vault',
    );
    await fails(tenant, { destination_url: `https://localhost:${closed}` }, [
      502,
      /no connection can be opened/,
    ]);
    await fails(tenant, { destination_url: `https://localhost:${untrusted.port}` }, [502, /TLS/]);
    destination.behave(({ reset }) => reset());
    await fails(tenant, { destination_url: url }, [502, /closed the connection/]);
    destination.behave(raw('nonsense\r\n\r\n', 'end'));
    await fails(tenant, { destination_url: url }, [502, /other than a valid HTTP response/]);
  });

  test('403: an address that is not public, unless the operator allows it', async () => {
    const port = untrusted.port === 1 ? 2 : 1;
    await fails(await newTenant(), { destination_url: `https://localhost:${port}` }, [
      403,
      /no public address/,
    ]);
  });

  test('a response that breaks off ends the connection of its caller', async () => {
    const call = await proxyOf(await newTenant(), { destination_url: url });
    for (const behavior of [resetAfter(1_000), lyingAboutLength(2_000, 1_000)]) {
      destination.behave(behavior);
      await assert.rejects(call('GET', ''));
    }
    destination.behave(answer());
    assert.equal((await call('GET', '')).status, 200);
  });

  test('a client certificate is shown to a destination that asks for one', async () => {
    const tenant = await newTenant();
    const { cert, key } = mutual.destination.issue('the vault');
    const authorities = { destination_url: mutual.url };
    await fails(tenant, { ...authorities, name: 'untrusted authority' }, [502, /TLS|closed/]);
    const other = await createProxy(tenant, { client_certificate: cert, client_key: key });
    assert.equal(other.client_certificate.subject, 'the vault');
  });
});

onBothEngines('Client certificates of proxies', (engine) => {
  const newTenant = tenantsOf(engine, { environment: mutual.environment });

  test('are shown to the destination, and only by the proxy that has one', async () => {
    const tenant = await newTenant();
    const { cert, key } = mutual.destination.issue('the vault');
    const own = { client_certificate: cert, client_key: key };
    const [shown, hidden] = [
      await proxyOf(tenant, { destination_url: mutual.url, ...own }),
      await proxyOf(tenant, { destination_url: mutual.url }),
    ];
    assert.equal((await shown('GET', '')).status, 200);
    assert.equal(mutual.destination.requests.at(-1)?.clientName, 'the vault');
    assert.equal((await hidden('GET', '')).status, 502);
  });
});

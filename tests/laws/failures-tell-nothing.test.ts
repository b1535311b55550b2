/** No failure of an expression tells anything about a value that its caller may not read. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type EncryptionKey, encrypted } from '../support/client-encryption.ts';
import { answer } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { createProxy } from '../support/proxies.ts';
import { startCalled } from '../support/proxy-calls.ts';
import { createReactor } from '../support/reactors.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';

const { destination, url, environment } = await startCalled({ after });
destination.behave(answer());

/** Two values of one form, of which each expression fails for the first alone. */
const values = ['4242424242424242', '5555555555554444'] as const;
const id = 'guessed';
const chosen = `{{ ${id} | slice: 0, 1 | replace: '4', `;

const failures: readonly string[] = [
  `${chosen} '%' | url_decode }}`,
  `${chosen} 'true' | to_boolean }}`,
  `${chosen} 'x' | to_number }}`,
  `${chosen} '{' | parse_json }}`,
  `${chosen} '..' }}`,
  `${chosen} '../x' }}`,
  `${chosen} '' }}`,
  `{{ ${id} | slice: 0, 1 | replace: '4', '\\u000d\\u000a' }}`,
  // Longer than anything may be, by doubling.
  `${chosen} 'xxxxxxxxxxxxxxxx'${" | replace: 'x', 'xxxxxxxxxxxxxxxx'".repeat(5)} }}`,
];

const encoded = (text: string) => encodeURIComponent(text);

interface Asking {
  readonly tenant: TestTenant;
  readonly key: string | undefined;
  readonly proxy: string;
  readonly reactor: string | undefined;
  /** Of every call. */
  readonly headers?: object;
  readonly expressions?: readonly string[];
}

/** Everything that the caller gets for each expression in each part of a call. */
async function responses({
  tenant,
  key,
  proxy,
  reactor,
  headers: given,
  expressions = failures,
}: Asking): Promise<readonly string[]> {
  const seen: string[] = [];
  const call = async (
    path: string,
    sent: { headers?: object; body?: unknown },
    method = 'POST',
  ) => {
    const headers = { 'svc-proxy-key': proxy, ...given, ...sent.headers };
    const received = await tenant.vault.send(method, `/proxy${path}`, {
      ...sent,
      ...(key && { key }),
      headers,
    });
    seen.push(`${received.status} ${withoutTrace(received.text)}`);
  };
  for (const failing of expressions) {
    await call('/x', { body: { failing, in: `a${failing}` } });
    await call(`/x/${encoded(failing)}/y`, { body: {} });
    await call(`/x?v=${encoded(failing)}`, { body: {} });
    await call('/x', { headers: { 'x-value': failing.replace(/\\u000d\\u000a/, '') }, body: {} });
    await call('/x', { headers: { 'content-type': 'text/plain' }, body: failing });
    await call('/x', { headers: { 'content-type': 'application/xml' }, body: `<a>${failing}</a>` });
    if (reactor === undefined || key === undefined) continue;
    const sent = { key, body: { args: { failing, in: `a${failing}` } } };
    const { status, text } = await tenant.vault.send('POST', `/reactors/${reactor}/react`, sent);
    seen.push(`${status} ${withoutTrace(text)}`);
  }
  return seen;
}

const withoutTrace = (text: string) => text.replace(/"trace_?id":"[^"]*"/gi, '');

onBothEngines('a failure', (engine) => {
  const newTenant = tenantsOf(engine, { environment });

  /** The same of each value, in tenants of their own. */
  async function compare(asking: (tenant: TestTenant) => Promise<Omit<Asking, 'tenant'>>) {
    const both = await Promise.all(
      values.map(async (data) => {
        const tenant = await newTenant();
        await tenant.token({ id, type: 'token', data });
        return responses({ tenant, ...(await asking(tenant)) });
      }),
    );
    assert.deepEqual(both[0], both[1]);
    return both[0] ?? [];
  }
  const silent = 'module.exports = async () => ({ raw: "ok" })';

  test('tells a key that may use a token, and not read it, nothing about the value', async () => {
    const seen = await compare(async (tenant) => ({
      key: await tenant.application({ permissions: ['token:use'] }),
      proxy: (await createProxy(tenant, { destination_url: url })).key,
      reactor: (await createReactor(tenant, { code: silent })).id,
    }));
    assert.ok(seen.filter((one) => one.startsWith('200')).length > failures.length);
  });

  test('tells a caller without a key nothing about a value', async () => {
    await compare(async (tenant) => {
      const made = await tenant.send('POST', '/applications', {
        key: tenant.managementKey,
        body: { name: 'lends', type: 'private', permissions: ['token:use'] },
      });
      const given = {
        destination_url: url,
        require_auth: false,
        application: { id: made.body.id },
      };
      return { key: undefined, proxy: (await createProxy(tenant, given)).key, reactor: undefined };
    });
  });

  /** A character of what nobody may read, named in every way, of which only one way has the name in it. */
  const ofConfiguration = [
    `{{ config: SECRET | slice: 0, 1 | replace: '4', '%' | url_decode }}`,
    `{{ proxy.config.SECRET | slice: 0, 1 | replace: '4', '%' | url_decode }}`,
    `{{ proxy[proxy.request.headers.x-name].SECRET | slice: 0, 1 | replace: '4', '%' | url_decode }}`,
    `{{ proxy | stringify | split: 'SECRET' | last | slice: 3, 1 | replace: '4', '%' | url_decode }}`,
  ];
  /** Uses up the work of a text for one value alone; what follows it fails then. */
  const expensive = (source: string) =>
    `{{ ${source} | slice: 0, 1 | replace: '4', 'xxxxxxxxxxxxxxxx'` +
    `${" | replace: 'x', 'xxxxxxxxxxxxxxxx'".repeat(6)} | size }}` +
    `{{ proxy.request.headers.x-name | upcase | downcase | upcase }}`;

  test('tells nobody anything about configuration', async () => {
    const both = await Promise.all(
      values.map(async (SECRET) => {
        const tenant = await newTenant();
        const lent = await tenant.send('POST', '/applications', {
          key: tenant.managementKey,
          body: { name: 'lends', type: 'private', permissions: ['token:use'] },
        });
        const given = {
          destination_url: url,
          configuration: { SECRET },
          require_auth: false,
          application: { id: lent.body.id },
        };
        const { key: proxy } = await createProxy(tenant, given);
        const headers = { 'x-name': 'config' };
        const expressions = [...ofConfiguration, expensive('config: SECRET')];
        const asking = { tenant, proxy, headers, expressions };
        const key = await tenant.application({ permissions: ['token:use', 'reactor:invoke'] });
        const configuration = { SECRET };
        const reactor = (await createReactor(tenant, { code: silent, configuration })).id;
        return [
          ...(await responses({ ...asking, key: undefined, reactor: undefined })),
          ...(await responses({ ...asking, key, reactor })),
        ];
      }),
    );
    assert.deepEqual(both[0], both[1]);
    assert.ok(both[0]?.some((one) => one.startsWith('200')));
  });

  test('tells nobody anything about encrypted data, which other parts of the call have read', async () => {
    const both = await Promise.all(
      values.map(async (number) => {
        const tenant = await newTenant();
        const key = await tenant.application({ permissions: ['proxy:invoke', 'token:use'] });
        const { key: proxy } = await createProxy(tenant, { destination_url: url });
        const made = await tenant.send('POST', '/keys', { key: tenant.managementKey, body: {} });
        const sealed = await encrypted(made.body as EncryptionKey, JSON.stringify(number));
        const given = Buffer.from(JSON.stringify({ type: 'token', encrypted: sealed }));
        const seen: string[] = [];
        const call = async (body: unknown, more: object) => {
          const always = { 'svc-proxy-key': proxy, 'svc-encrypted': given.toString('base64') };
          const sent = { key, headers: { ...always, ...more }, body };
          const { status, text } = await tenant.vault.send('POST', '/proxy/x', sent);
          seen.push(`${status} ${withoutTrace(text)}`);
        };
        const fails = (source: string) => `{{ ${source}, 1 | replace: '4', '%' | url_decode }}`;
        await call({ n: fails('encrypted.data | slice: 0') }, {});
        const readBody = { 'x-value': fails('proxy.request.body | slice: 6') };
        await call({ n: '{{ encrypted.data }}' }, readBody);
        return seen;
      }),
    );
    assert.deepEqual(both[0], both[1]);
    assert.ok(both[0]?.every((one) => one.startsWith('200')));
  });

  test('is in the log, which names the token', async () => {
    const tenant = await newTenant();
    await tenant.token({ id, type: 'token', data: values[0] });
    const key = await tenant.application({ permissions: ['token:use'] });
    const { key: proxy } = await createProxy(tenant, { destination_url: url });
    const headers = { 'svc-proxy-key': proxy };
    const sent = { key, headers, body: { x: failures[0] } };
    assert.equal((await tenant.vault.send('POST', '/proxy/x', sent)).status, 200);
    const entry = (await tenant.rows('logs')).find(
      ({ entity_id, operation }) => entity_id === id && operation === 'use',
    );
    assert.match(entry?.message ?? '', /an expression failed and gave null$/);
  });
});

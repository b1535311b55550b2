/** What the description says of attributes beyond the schemas that requests are checked by: the vault agrees. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import Type from 'typebox';
import { Compile } from 'typebox/schema';
import { onBothEngines } from '../support/engines.ts';
import { type Given, type TestTenant, tenantsOf } from '../support/tenant.ts';

interface Described {
  readonly components: { readonly schemas: Readonly<Record<string, object>> };
}

const rule = { priority: 1, container: '/pci/', permissions: ['token:read'], transform: 'mask' };
const application = { name: 'described', type: 'private', rules: [rule] };
const proxy = { name: 'described', destination_url: 'https://example.com' };
const number = '4242424242424242';
const card = (data: Given) => ({ type: 'card', data: { number, ...data } });
const generic = { type: 'token', data: 'any' };
const keys = (length: number) =>
  Object.fromEntries(Array.from({ length }, (_, index) => [`k${index}`, 'v']));
const paths = (length: number) => Array.from({ length }, (_, index) => `/p${index}`);

interface Row {
  readonly path: string;
  readonly schema: string;
  readonly accepted: readonly Given[];
  readonly refused: readonly Given[];
}

/** Values at either side of each form. */
const rows: readonly Row[] = [
  {
    path: '/applications',
    schema: 'ApplicationRequest',
    accepted: [{ rules: [{ ...rule, priority: 2 ** 53 - 1, container: '/A-b_1/' }] }],
    refused: [
      { rules: [{ ...rule, priority: 0 }] },
      { rules: [{ ...rule, container: 'pci' }] },
      { rules: [{ ...rule, permissions: [] }] },
      { rules: [{ ...rule, permissions: ['application:read'] }] },
      { permissions: ['token:reed'] },
      { rules: Array.from({ length: 101 }, (_, index) => ({ ...rule, priority: index + 1 })) },
    ].map((given) => ({ ...application, ...given })),
  },
  {
    path: '/tokens',
    schema: 'CreateTokenToken',
    accepted: [
      { containers: [] },
      { containers: ['/a/'] },
      { metadata: keys(50) },
      { metadata: { ['k'.repeat(100)]: 'v', 'a\nb': 'v' } },
      { search_indexes: Array.from({ length: 10 }, () => '{{ data }}') },
    ],
    refused: [
      { containers: ['/a/', '/b/'] },
      { containers: ['/a b/'] },
      { metadata: keys(51) },
      { metadata: { '': 'v' } },
      { metadata: { ['k'.repeat(101)]: 'v' } },
      { metadata: { 'a\nb': { not: 'text' } } },
      { search_indexes: Array.from({ length: 11 }, () => '{{ data }}') },
    ],
  },
  {
    path: '/tokens',
    schema: 'CreateCardToken',
    accepted: [
      card({ expiration_month: '02', expiration_year: '2030' }),
      card({ expiration_month: 12, expiration_year: null, cvc: null }),
    ],
    refused: [
      card({ expiration_month: '13' }),
      card({ expiration_month: '00' }),
      card({ expiration_year: '2100' }),
      card({ expiration_year: 1999 }),
      card({ cvc: '12' }),
    ],
  },
  {
    path: '/token-intents',
    schema: 'CreateSocialSecurityNumberTokenIntent',
    accepted: [{ type: 'social_security_number', data: '078-05-1120' }],
    refused: [
      { type: 'social_security_number', data: '078-05-112' },
      { type: 'social_security_number', data: '078-05-11200' },
    ],
  },
  {
    path: '/proxies',
    schema: 'ProxyRequest',
    accepted: [
      { timeout: 1, allowed_methods: ['GET'], allowed_paths: ['/a'], request_transforms: [] },
      { timeout: 60, allowed_paths: paths(100), request_reactor_id: null },
      { configuration: { name: 'v' } },
    ],
    refused: [
      { timeout: 0 },
      { timeout: 61 },
      { allowed_methods: [] },
      { allowed_methods: ['GET', 'GET'] },
      { allowed_methods: ['TRACE'] },
      { allowed_paths: [] },
      { allowed_paths: paths(101) },
      { allowed_paths: ['/a?b'] },
      { allowed_paths: ['/a#b'] },
      { allowed_paths: ['/a\\b'] },
      { allowed_paths: ['a'] },
      { configuration: { 'a\u2028b': 1 } },
      { request_transforms: ['text'] },
      { request_reactor_id: 'r' },
    ],
  },
  {
    path: '/reactors',
    schema: 'ReactorRequest',
    accepted: [{ formula: null, runtime: null }],
    refused: [{ code: '' }, { code: ' '.repeat(50_001) }, { runtime: [] }, { formula: {} }],
  },
  {
    path: '/webhooks',
    schema: 'WebhookRequest',
    accepted: [{ events: ['token.created'] }],
    refused: [{ events: [] }, { events: ['token.made'] }],
  },
];

/** What the bodies of a schema have in common. */
const common: Readonly<Record<string, Given>> = {
  ApplicationRequest: application,
  CreateTokenToken: generic,
  ProxyRequest: proxy,
  ReactorRequest: { name: 'described', code: 'module.exports = () => ({ raw: 1 })' },
  WebhookRequest: { name: 'described', url: 'https://hooks.example.com/in', events: [] },
};

/** Whether the described schema allows a body. */
function describedBy({ components }: Described, name: string): (body: unknown) => boolean {
  // References are looked up among definitions of the schema itself.
  const text = JSON.stringify(components.schemas).replaceAll('#/components/schemas/', '#/$defs/');
  const { [name]: schema, ...others } = JSON.parse(text) as Record<string, object>;
  const compiled = Compile(Type.Unsafe({ ...schema, $defs: others }));
  return (body) => compiled.Check(body);
}

function keyFor(tenant: TestTenant, path: string): string | Promise<string> {
  if (path === '/token-intents')
    return tenant.application({ permissions: ['token-intent:create'] });
  return path === '/tokens' ? tenant.key : tenant.managementKey;
}

onBothEngines('what the description says of attributes', (engine) => {
  const tenants = tenantsOf(engine);

  for (const { path, schema, accepted, refused } of rows) {
    test(`${schema}: what it allows is created, and what it does not is 400`, async () => {
      const tenant = await tenants();
      const document = (await tenant.vault.send('GET', '/openapi.json')).body as Described;
      const allows = describedBy(document, schema);
      const key = await keyFor(tenant, path);
      for (const [given, status] of [
        ...accepted.map((body) => [body, 201] as const),
        ...refused.map((body) => [body, 400] as const),
      ]) {
        const body = { ...common[schema], ...given };
        const context = JSON.stringify(given).slice(0, 200);
        assert.equal(allows(body), status === 201, context);
        const received = await tenant.send('POST', path, { key, body });
        assert.equal(received.status, status, `${context}: ${received.text}`);
      }
    });
  }

  test('a container that is asked for has the described form, or is 400', async () => {
    const tenant = await tenants();
    const { body } = await tenant.vault.send('GET', '/openapi.json');
    for (const list of ['/v2/tokens', '/tokens/export']) {
      const { schema } = body.paths[list].get.parameters.find(
        ({ name }: { name?: string }) => name === 'container',
      );
      const described = Compile(Type.Unsafe(schema));
      for (const [container, status] of [
        ['/pci/', 200],
        ['/', 200],
        ['pci', 400],
        [`/${'a'.repeat(398)}/`, 200],
        [`/${'a'.repeat(399)}/`, 400],
      ] as const) {
        assert.equal(described.Check(container), status === 200, container);
        const received = await tenant.send('GET', `${list}?container=${container}`);
        assert.equal(received.status, status, container);
      }
    }
  });

  test('a token intent cannot be a network token, and the description has none', async () => {
    const tenant = await tenants();
    const document = (await tenant.vault.send('GET', '/openapi.json')).body as Described;
    assert.ok(!('CreateNetworkTokenTokenIntent' in document.components.schemas));
    const body = { type: 'network_token', data: { number } };
    const key = await keyFor(tenant, '/token-intents');
    assert.equal((await tenant.send('POST', '/token-intents', { key, body })).status, 400);
  });

  test('calls of proxies have their key, their destination and their body described', async () => {
    const { body } = await (await tenants()).vault.send('GET', '/openapi.json');
    const { post, get } = body.paths['/proxy'];
    const names = get.parameters.map(({ $ref }: { $ref: string }) => $ref.split('/').at(-1));
    assert.deepEqual(names, ['ProxyKey', 'ProxyUrl', 'TraceId']);
    assert.deepEqual(post.requestBody.content, { '*/*': { schema: {} } });
    assert.equal(get.requestBody, undefined);
    assert.equal(body.components.parameters.ProxyKey.name, 'SVC-PROXY-KEY');
  });
});

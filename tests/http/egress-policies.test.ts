/** Egress policies that contradict themselves are refused, and a placeholder needs a policy and a rule. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';

const charges = {
  host: 'api.example.com',
  methods: ['POST'],
  paths: ['/v1/*'],
  containers: ['/pci/'],
  places: ['header:Authorization', 'json:card.number', 'form:card[number]'],
  calls: { per_hour: 10, per_day: 100 },
  values: { per_day: 50 },
  approval: 'first',
};
const stored = { ...charges, places: ['header:authorization', ...charges.places.slice(1)] };
const card = { number: '4242424242424242', expiration_month: 12, expiration_year: 2030 };

onBothEngines('egress', (engine) => {
  const tenants = tenantsOf(engine);

  const asAdmin = (tenant: TestTenant) => (method: string, path: string, body?: unknown) =>
    tenant.send(method, path, { key: tenant.managementKey, ...(body !== undefined && { body }) });

  const base = { name: 'agent', type: 'private', permissions: ['proxy:invoke'] };

  test('201: policies are stored as they are decided by, shown, replaced, and removed', async () => {
    const admin = asAdmin(await tenants());
    const made = await admin('POST', '/applications', { ...base, egress: [charges] });
    assert.equal(made.status, 201, made.text);
    assert.deepEqual(made.body.egress, [stored]);
    const path = `/applications/${made.body.id}`;
    const { type: _, ...update } = base;
    const put = async (changed: object) =>
      (await admin('PUT', path, { ...update, ...changed })).body;
    assert.deepEqual((await put({})).egress, [stored], 'a client that does not know them');
    const tunnel = { host: '*.Example.com', port: 8443, tunnel: true };
    assert.deepEqual((await put({ egress: [tunnel] })).egress, [
      { ...tunnel, host: '*.example.com' },
    ]);
    assert.equal((await put({ egress: null })).egress, undefined);
    assert.equal((await admin('GET', path)).body.egress, undefined);
  });

  const contradictions: readonly (readonly [string, object[], RegExp])[] = [
    ['a tunnel with places', [{ ...charges, tunnel: true }], /egress\[0\]\.places/],
    ['a tunnel with methods', [{ host: 'a.example', tunnel: true, methods: ['GET'] }], /methods/],
    [
      'a tunnel with WebSocket',
      [{ host: 'a.example', tunnel: true, websocket: true }],
      /websocket/,
    ],
    ['WebSocket without TLS', [{ host: 'a.example', plain: true, websocket: true }], /websocket/],
    ['WebSocket without GET', [{ ...charges, websocket: true }], /egress\[0\]\.websocket/],
    [
      'a place in what opens a WebSocket',
      [{ ...charges, places: ['header:Sec-WebSocket-Key'] }],
      /egress\[0\]\.places\[0\]/,
    ],
    ['tokens without a place', [{ ...charges, places: undefined }], /egress\[0\]\.places/],
    ['places without a token', [{ ...charges, containers: undefined }], /egress\[0\]\.tokens/],
    ['values without tokens', [{ host: 'a.example', values: { per_day: 1 } }], /values/],
    ['values over http', [{ ...charges, plain: true }], /egress\[0\]\.plain/],
    ['a body where there is none', [{ ...charges, methods: ['GET'] }], /egress\[0\]\.places\[1\]/],
    [
      'more in an hour than in a day',
      [{ ...charges, calls: { per_hour: 2, per_day: 1 } }],
      /calls/,
    ],
    ['an empty limit', [{ ...charges, calls: {} }], /egress\[0\]\.calls/],
    ['an empty list', [{ ...charges, methods: [] }], /egress\[0\]\.methods/],
    ['the same policy twice', [charges, charges], /egress\[1\]/],
    ['one that is never reached', [{ host: 'api.example.com' }, charges], /egress\[1\]/],
    ['one behind a wildcard', [{ host: '*.example.com' }, charges], /egress\[1\]/],
    ['a host opened and not', [charges, { host: '*.example.com', tunnel: true }], /tunnel/],
    ['an address', [{ host: '10.0.0.1' }], /egress\[0\]\.host/],
    ['a host with a port', [{ host: 'api.example.com:443' }], /egress\[0\]\.host/],
    ['any host', [{ host: '*' }], /egress\[0\]\.host/],
    ['any host of a top level', [{ host: '*.com' }], /egress\[0\]\.host/],
    ['a place in a path', [{ ...charges, places: ['path:1'] }], /egress\[0\]\.places\[0\]/],
    ['a place in a query', [{ ...charges, places: ['query:key'] }], /egress\[0\]\.places\[0\]/],
    ['a place in Host', [{ ...charges, places: ['header:Host'] }], /egress\[0\]\.places\[0\]/],
    ['an unknown method', [{ ...charges, methods: ['CONNECT'] }], /egress\[0\]\.methods\[0\]/],
    ['a path with a query', [{ ...charges, paths: ['/a?b'] }], /egress\[0\]\.paths\[0\]/],
    ['a container that is none', [{ ...charges, containers: ['pci'] }], /containers\[0\]/],
    ['an unknown attribute', [{ ...charges, header: 'x' }], /egress/],
  ];

  for (const [what, egress, named] of contradictions) {
    test(`400: ${what} is refused, and nothing is stored`, async () => {
      const tenant = await tenants();
      const before = await tenant.counts();
      const { status, text } = await asAdmin(tenant)('POST', '/applications', { ...base, egress });
      assert.equal(status, 400, text);
      assert.match(text, named);
      assert.deepEqual(await tenant.counts(), before);
    });
  }

  test('400: policies of an application whose key may be in a browser, or that sends no token', async () => {
    const admin = asAdmin(await tenants());
    for (const [type, permission] of [
      ['public', 'token:create'],
      ['management', 'log:read'],
    ]) {
      const body = { name: 'x', type, permissions: [permission], egress: [charges] };
      const { status, text } = await admin('POST', '/applications', body);
      assert.equal(status, 400, text);
      assert.match(text, /private applications only/);
    }
  });

  test('400: the number of policies has a limit', async () => {
    const admin = asAdmin(await tenants());
    const some = (count: number) =>
      Array.from({ length: count }, (_, at) => ({ host: `h${at}.example.com` }));
    assert.equal((await admin('POST', '/applications', { ...base, egress: some(50) })).status, 201);
    assert.equal((await admin('POST', '/applications', { ...base, egress: some(51) })).status, 400);
  });

  test('201: a placeholder for what a policy and a rule permit, of either form', async () => {
    const tenant = await tenants();
    await tenant.token({ id: 'card-1', type: 'card', data: card });
    const policy = { ...charges, containers: undefined, tokens: ['card-1'] };
    const key = await tenant.application({ permissions: ['proxy:invoke'], egress: [policy] });
    const make = (body: object) => tenant.send('POST', '/placeholders', { key, body });
    const made = await make({ token_id: 'card-1', property: 'number' });
    assert.equal(made.status, 201, made.text);
    assert.match(made.body.placeholder, /^sr_[A-Za-z0-9]{60,}$/);
    assert.deepEqual(made.body.hosts, ['api.example.com']);
    const number = await make({ token_id: 'card-1', property: 'number', form: 'number' });
    assert.match(number.body.placeholder, /^9999\d{12}$/);
    assert.ok((await tenant.logged()).includes('placeholder'));
    const ended = await make({ token_id: 'card-1', property: 'number', expires_at: '2001-01-01' });
    assert.equal(ended.status, 400, ended.text);
    const later = { token_id: 'card-1', property: 'cvc', expires_at: '2099-01-01' };
    assert.match((await make(later)).body.expires_at, /^2099-01-01T/);
  });

  test('400, 403, 404: no placeholder without a policy, a property, a permission, or a token', async () => {
    const tenant = await tenants();
    await tenant.token({ id: 'card-1', type: 'card', data: card });
    await tenant.token({ id: 'elsewhere', type: 'token', data: 'v' });
    const egress = [charges];
    const key = await tenant.application({ permissions: ['proxy:invoke'], egress });
    const attempt = async (given: string, body: object) => {
      const { status, text } = await tenant.send('POST', '/placeholders', { key: given, body });
      return `${status} ${/"(token_id|property|form)":\[/.exec(text)?.[1] ?? ''}`.trim();
    };
    const wanted = { token_id: 'card-1', property: 'number' };
    assert.equal(await attempt(key, { token_id: 'card-1' }), '400 property');
    assert.equal(await attempt(key, { ...wanted, property: 'x' }), '400 property');
    assert.equal(await attempt(key, { token_id: 'elsewhere' }), '400 token_id');
    assert.equal(await attempt(key, { ...wanted, form: 'number' }), '400 form');
    assert.equal(await attempt(key, { ...wanted, token_id: 'missing' }), '404');
    const without = await tenant.application({ permissions: ['proxy:invoke'] });
    assert.equal(await attempt(without, wanted), '400 token_id');
    const rule = { priority: 1, container: '/other/', permissions: ['proxy:invoke'] };
    const ruled = await tenant.application({ rules: [{ ...rule, transform: 'reveal' }], egress });
    assert.equal(await attempt(ruled, wanted), '403');
    const reader = await tenant.application({ permissions: ['token:read'], egress });
    assert.equal(await attempt(reader, wanted), '403');
    assert.equal(await attempt(tenant.managementKey, wanted), '403');
    const other = await tenants();
    assert.equal(await attempt(await other.application({ ...base, egress }), wanted), '404');
  });

  test('200: explain says what opens a WebSocket, and where a value may be in its handshake', async () => {
    const tenant = await tenants();
    await tenant.token({ id: 'card-1', type: 'card', data: card });
    const admin = asAdmin(tenant);
    const places = ['header:authorization', 'header:sec-websocket-protocol', 'json:key'];
    const live = { host: 'live.example.com', containers: ['/pci/'], places, websocket: true };
    const egress = [{ ...live, paths: ['/live'] }, { host: 'live.example.com' }, charges];
    const made = await admin('POST', '/applications', { ...base, egress });
    const question = { application_id: made.body.id, method: 'GET', websocket: true };
    const ask = async (given: object) =>
      admin('POST', '/egress/explain', {
        ...question,
        url: 'https://live.example.com/live',
        token_id: 'card-1',
        ...given,
      });
    const { body } = await ask({});
    assert.deepEqual([body.outcome, body.policy, body.value.sent], ['sent', 0, true]);
    assert.deepEqual(body.value.places, places.slice(0, 2), 'a handshake has no body');
    assert.match(body.value.reason, /fewer than 16 characters/);
    const value = async (given: object) => (await ask(given)).body.value.sent;
    assert.equal(await value({ place: 'header:Sec-WebSocket-Protocol' }), true);
    assert.equal(await value({ place: 'json:key' }), false);
    assert.equal(await value({ place: 'json:key', method: 'POST', websocket: false }), true);
    const bodies = [{ ...live, places: ['json:key'] }];
    assert.equal(
      await value({ egress: bodies }),
      false,
      'no place of the policy is in a handshake',
    );
    const other = await ask({ url: 'https://live.example.com/other' });
    assert.deepEqual([other.body.outcome, other.body.policy], ['refused', 1]);
    assert.match(other.body.reason, /no WebSocket/);
    const posted = await ask({ method: 'POST' });
    assert.equal(posted.status, 400);
    assert.match(posted.text, /"websocket":\[/);
  });

  test('200: explain says what would happen to a request and to a value, also of a proposal', async () => {
    const tenant = await tenants();
    await tenant.token({ id: 'card-1', type: 'card', data: card });
    await tenant.token({ id: 'elsewhere', type: 'token', data: 'v' });
    const admin = asAdmin(tenant);
    const made = await admin('POST', '/applications', {
      ...base,
      egress: [
        charges,
        { host: 'git.example.com', tunnel: true },
        { host: 'old.example.com', plain: true },
      ],
    });
    const ask = async (given: object) => {
      const question = { application_id: made.body.id, method: 'POST', ...given };
      const { body, status, text } = await admin('POST', '/egress/explain', question);
      assert.equal(status, 200, text);
      return [body.outcome, body.policy, body.value?.sent];
    };
    const url = 'https://api.example.com/v1/charges';
    assert.deepEqual(await ask({ url }), ['sent', 0, undefined]);
    assert.deepEqual(await ask({ url: 'https://API.example.com./v1/x?q=1' }), [
      'sent',
      0,
      undefined,
    ]);
    for (const other of [
      'https://api.example.com/v2/',
      'https://api.example.com:444/v1/x',
      'http://api.example.com/v1/x',
      'https://evil.example/v1/x',
      'https://api.example.com.evil.example/v1/x',
    ]) {
      assert.deepEqual(await ask({ url: other }), ['refused', undefined, undefined], other);
    }
    assert.deepEqual((await ask({ url, method: 'GET' }))[0], 'refused');
    assert.deepEqual((await ask({ url: 'https://git.example.com/x' }))[0], 'tunnelled');
    assert.deepEqual((await ask({ url: 'http://old.example.com/' }))[0], 'sent');
    const value = async (given: object) => (await ask({ url, token_id: 'card-1', ...given }))[2];
    assert.equal(await value({}), true);
    assert.equal(await value({ place: 'header:AUTHORIZATION' }), true);
    const { placeholder } = (
      await tenant.send('POST', '/placeholders', {
        key: made.body.key,
        body: { token_id: 'card-1', property: 'number' },
      })
    ).body;
    assert.deepEqual(await ask({ url, placeholder }), ['sent', 0, true]);
    for (const wrong of ['sr_x', `${placeholder}x`, `x ${placeholder}`]) {
      const question = { application_id: made.body.id, method: 'POST', url, placeholder: wrong };
      assert.equal((await admin('POST', '/egress/explain', question)).status, 400, wrong);
    }
    assert.equal(await value({ place: 'json:card.number' }), true);
    assert.equal(await value({ place: 'json:note' }), false);
    assert.equal(await value({ place: 'path' }), false);
    assert.equal(await value({ token_id: 'elsewhere' }), false);
    assert.equal(await value({ method: 'GET' }), false);
    const proposal = [{ ...charges, places: ['json:items.*.number'] }];
    assert.equal(await value({ place: 'json:items.3.number', egress: proposal }), true);
    assert.equal(await value({ place: 'json:items.number', egress: proposal }), false);
    await tenant.set({ proxy_destinations: 'other.example' });
    assert.deepEqual(await ask({ url }), ['refused', 0, undefined]);
    for (const wrong of [
      { url: 'ftp://a.example/' },
      { url, place: 'path' },
      { url: 'https://u:p@a.example/' },
    ]) {
      const question = { application_id: made.body.id, method: 'POST', ...wrong };
      assert.equal((await admin('POST', '/egress/explain', question)).status, 400);
    }
    const aboutToken = (await tenant.rows('logs')).filter(
      ({ entity_type, operation }) => entity_type === 'token' && operation === 'explain',
    );
    assert.ok(
      aboutToken.some(({ entity_id }) => entity_id === 'card-1'),
      'the log of a token says who learned that it exists',
    );
    const { status } = await admin('POST', '/egress/explain', {
      application_id: tenant.id,
      method: 'GET',
      url,
    });
    assert.equal(status, 404);
  });
});

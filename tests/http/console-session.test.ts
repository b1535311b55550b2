/** Signing in to the console, and what a session of it may do: each attack on it has its test here. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { linkLifeMs } from '../../src/access/people/links.ts';
import { consoleSessionIdleMs, consoleSessionLifeMs } from '../../src/access/people/sign-in.ts';
import { minute, second } from '../../src/base/clock.ts';
import { cookieName } from '../../src/http/console/credential.ts';
import { createServiceHeaders } from '../../src/http/protocol/headers.ts';
import type { RequestContext } from '../../src/http/protocol/request-context.ts';
import { headersOfCall } from '../../src/http/proxy/call-headers.ts';
import { onBothEngines } from '../support/engines.ts';
import { type SignedIn, signedIn, signInPerson, useCode } from '../support/people.ts';
import { nextLook } from '../support/poll.ts';
import { newTenant as newTenantOf, type TestTenant, tenantsOf } from '../support/tenant.ts';
import { createStillClock, startVault } from '../support/vault.ts';

interface Desk {
  readonly tenant: TestTenant;
  readonly role: string;
  readonly management: string;
  readonly person: SignedIn;
}

onBothEngines('sessions of the console', (engine) => {
  const newTenant = tenantsOf(engine, { clock: createStillClock() });
  const administer = (tenant: TestTenant, method: string, path: string, body?: unknown) =>
    tenant.send(method, path, { key: tenant.managementKey, body });

  async function newDesk(): Promise<Desk> {
    const tenant = await newTenant();
    const idOf = async (key: string) =>
      (await tenant.send('GET', '/applications/key', { key })).body.id;
    const role = await idOf(tenant.key);
    const management = await idOf(tenant.managementKey);
    const { url } = tenant.vault;
    const applications = [role, management];
    const person = await signInPerson(url, tenant.managementKey, { applications });
    return { tenant, role, management, person };
  }
  const newCode = async ({ tenant, person }: Desk): Promise<string> =>
    (await administer(tenant, 'POST', `/people/${person.id}/links`)).body.code;

  test('a link works once: of two uses at the same time one signs in', async () => {
    const desk = await newDesk();
    const { url } = desk.tenant.vault;
    const code = await newCode(desk);
    const uses = await Promise.all([useCode(url, code), useCode(url, code)]);
    assert.deepEqual(uses.map(({ status }) => status).sort(), [204, 401]);
    assert.equal((await useCode(url, code)).status, 401);
  });

  test('a link alone signs in nobody whose request another server passed on', async () => {
    const desk = await newDesk();
    const { url } = desk.tenant.vault;
    const code = await newCode(desk);
    for (const name of ['x-forwarded-for', 'forwarded', 'via', 'x-real-ip', 'x-forwarded-host']) {
      assert.equal((await useCode(url, code, { [name]: '192.0.2.1' })).status, 403, name);
    }
    assert.equal((await useCode(url, code)).status, 204);
  });

  test('a link works for ten minutes', async () => {
    const desk = await newDesk();
    const { url, clock } = desk.tenant.vault;
    const early = await newCode(desk);
    clock.advance(linkLifeMs - 1);
    assert.equal((await useCode(url, early)).status, 204);
    const late = await newCode(desk);
    clock.advance(linkLifeMs);
    assert.equal((await useCode(url, late)).status, 401);
  });

  test('a new link takes the place of the one before: a person has one at most', async () => {
    const desk = await newDesk();
    const { url } = desk.tenant.vault;
    const before = await newCode(desk);
    const now = await newCode(desk);
    assert.equal((await desk.tenant.rows('console_links')).length, 1);
    assert.equal((await useCode(url, before)).status, 401);
    assert.equal((await useCode(url, now)).status, 204);
  });

  test('a link, and the session that it began, end with the key that made the link', async () => {
    const desk = await newDesk();
    const { tenant, role, management } = desk;
    const { url } = tenant.vault;
    const added = await administer(tenant, 'POST', `/applications/${management}/keys`);
    const { id: leaked, key } = added.body;
    const linkTo = async (id: string) =>
      (await tenant.send('POST', `/people/${id}/links`, { key })).body.code;
    const other = await signInPerson(url, key, { name: 'Grace Hopper', applications: [role] });
    const code = await linkTo(desk.person.id);
    assert.equal((await other.send(role, 'GET', '/tokens?size=1')).status, 200);
    const ended = await administer(tenant, 'DELETE', `/applications/${management}/keys/${leaked}`);
    assert.equal(ended.status, 204, ended.text);
    tenant.vault.clock.advance(second);
    assert.equal((await other.send(role, 'GET', '/tokens?size=1')).status, 401);
    assert.equal((await useCode(url, code)).status, 401);
    assert.equal((await desk.person.send(role, 'GET', '/tokens?size=1')).status, 200);
  });

  test('a link, and the session that it began, end with its maker’s place in the vault', async () => {
    for (const end of ['person', 'role'] as const) {
      const desk = await newDesk();
      const { tenant, role, management, person } = desk;
      const { url } = tenant.vault;
      const made = await administer(tenant, 'POST', '/people', {
        name: 'Grace Hopper',
        applications: [role],
      });
      const { id } = made.body;
      const linkFor = async () =>
        (await person.send(management, 'POST', `/people/${id}/links`)).body.code;
      const other = await signedIn(url, id, await useCode(url, await linkFor()));
      const code = await linkFor();
      assert.equal((await other.send(role, 'GET', '/tokens?size=1')).status, 200);
      const ended =
        end === 'person'
          ? await administer(tenant, 'DELETE', `/people/${person.id}`)
          : await administer(tenant, 'PUT', `/people/${person.id}`, {
              name: 'Ada Lovelace',
              applications: [role],
            });
      assert.ok(ended.status < 300, ended.text);
      tenant.vault.clock.advance(second);
      assert.equal((await other.send(role, 'GET', '/tokens?size=1')).status, 401, end);
      assert.equal((await useCode(url, code)).status, 401, end);
    }
  });

  test('a code is refused alike whether it is unknown, used, or of no form', async () => {
    const desk = await newDesk();
    const { url } = desk.tenant.vault;
    const used = await newCode(desk);
    await useCode(url, used);
    const other = `${desk.tenant.id}.${'A'.repeat(43)}`;
    const texts = new Set<string>();
    for (const code of [used, other, 'no code', '']) {
      const refused = await useCode(url, code);
      assert.equal(refused.status, 401);
      texts.add(refused.text);
    }
    assert.equal(texts.size, 1);
  });

  test('the cookie is for this host alone, for no script, and for no request of another site', async () => {
    const desk = await newDesk();
    const { headers } = await useCode(desk.tenant.vault.url, await newCode(desk));
    const cookie = headers.get('set-cookie') ?? '';
    assert.ok(cookie.startsWith('__Host-'), cookie);
    for (const attribute of ['Secure', 'HttpOnly', 'SameSite=Strict', 'Path=/', 'Max-Age=43200']) {
      assert.ok(cookie.split('; ').includes(attribute), attribute);
    }
    assert.ok(!/domain/i.test(cookie));
  });

  test('signing in makes a new session whatever the browser sent: none can be fixed beforehand', async () => {
    const desk = await newDesk();
    const { url } = desk.tenant.vault;
    const fixed = `${desk.tenant.id}.${'B'.repeat(43)}`;
    const code = await newCode(desk);
    const { headers } = await useCode(url, code, { cookie: `${cookieName}=${fixed}` });
    assert.ok(!headers.get('set-cookie')?.includes(fixed));
    const shown = await desk.tenant.vault.send('GET', '/console/session', {
      headers: { cookie: `${cookieName}=${fixed}` },
    });
    assert.equal(shown.status, 401);
  });

  test('the cookie alone is no key: a page of another origin cannot act with it', async () => {
    const { tenant, role, person } = await newDesk();
    const { vault } = tenant;
    const as = person.headersAs(role);
    const attempts: Readonly<Record<string, string>>[] = [
      { cookie: person.cookie },
      { cookie: person.cookie, 'SVC-CONSOLE-APPLICATION': role },
      { ...as, 'SVC-CONSOLE': 'guessed' },
      { ...as, 'sec-fetch-site': 'same-site' },
      { ...as, 'sec-fetch-site': 'cross-site' },
      { ...as, origin: 'https://evil.example' },
      { ...as, origin: 'null' },
      { ...as, cookie: '' },
    ];
    const body = { type: 'token', data: 'forged' };
    for (const headers of attempts) {
      const refused = await vault.send('POST', '/tokens', { headers, body });
      assert.equal(refused.status, 401, JSON.stringify(headers));
    }
    for (const method of ['GET', 'POST', 'DELETE']) {
      const headers = { cookie: person.cookie, 'sec-fetch-site': 'cross-site' };
      const sent = method === 'POST' ? { headers, body: { code: 'x' } } : { headers };
      assert.equal((await vault.send(method, '/console/session', sent)).status, 403, method);
    }
    assert.deepEqual(await tenant.rows('tokens'), []);
    assert.equal((await vault.send('POST', '/tokens', { headers: as, body })).status, 201);
  });

  test('no header with an API key can pretend to be a session', async () => {
    const { tenant, role, person } = await newDesk();
    const secret = person.cookie.slice(cookieName.length + 1);
    for (const key of [secret, ['console', secret, person.forgeryToken, role].join(' ')]) {
      assert.equal((await tenant.vault.send('GET', '/tokens', { key })).status, 401);
    }
  });

  test('a session ends after fifteen minutes without a request, and twelve hours at most', async () => {
    const { tenant, role, person } = await newDesk();
    const { clock } = tenant.vault;
    const begun = clock.now();
    while (clock.now() - begun < consoleSessionLifeMs - consoleSessionIdleMs) {
      assert.equal((await person.send(role, 'GET', '/tokens?size=1')).status, 200);
      // The request does not wait for the commit that renews the session.
      for (let left = 0; left < consoleSessionIdleMs - 3 * minute; await nextLook()) {
        const [session] = await tenant.rows('console_sessions');
        left = (session?.idle_at ?? 0) - clock.now();
      }
      clock.advance(consoleSessionIdleMs - 4 * minute);
    }
    assert.equal((await person.send(role, 'GET', '/tokens?size=1')).status, 200);
    clock.advance(consoleSessionIdleMs);
    assert.equal((await person.send(role, 'GET', '/tokens?size=1')).status, 401);
    const shown = await tenant.vault.send('GET', '/console/session', {
      headers: { cookie: person.cookie },
    });
    assert.equal(shown.status, 401);
  });

  test('signing out ends the session at once, and the cookie with it', async () => {
    const { tenant, role, person } = await newDesk();
    const out = await tenant.vault.send('DELETE', '/console/session', {
      headers: { cookie: person.cookie },
    });
    assert.equal(out.status, 204, out.text);
    assert.match(out.headers.get('set-cookie') ?? '', /Max-Age=0/);
    assert.equal((await person.send(role, 'GET', '/tokens')).status, 401);
    assert.deepEqual(await tenant.rows('console_sessions'), []);
  });

  test('a person acts as an application of theirs and as no other', async () => {
    const desk = await newDesk();
    const other = await newTenant();
    const foreign = (await other.send('GET', '/applications/key')).body.id;
    const unmapped = (
      await administer(desk.tenant, 'POST', '/applications', {
        name: 'unmapped',
        type: 'private',
        permissions: ['token:read'],
      })
    ).body.id;
    for (const application of [foreign, unmapped, 'nothing']) {
      assert.equal((await desk.person.send(application, 'GET', '/tokens')).status, 401);
    }
    const { body: token } = await other.token({ type: 'token', data: 'foreign' });
    const read = await desk.person.send(desk.role, 'GET', `/tokens/${token.id}`);
    assert.equal(read.status, 404);
    assert.equal((await desk.person.send(desk.management, 'GET', '/tokens')).status, 403);
  });

  const refusedUses: Readonly<Record<string, (desk: Desk) => Promise<{ status: number }>>> = {
    'a forged request': ({ tenant, role, person }) => {
      const headers = { ...person.headersAs(role), 'SVC-CONSOLE': 'guessed' };
      return tenant.vault.send('GET', '/tokens', { headers });
    },
    'a request as an application that the person does not have': ({ tenant, person }) =>
      person.send(tenant.id, 'GET', '/tokens'),
    'a request after its end': ({ tenant, role, person }) => {
      tenant.vault.clock.advance(consoleSessionIdleMs);
      return person.send(role, 'GET', '/tokens');
    },
  };
  for (const [use, attempt] of Object.entries(refusedUses)) {
    test(`${use} with a session is in the log of its tenant`, async () => {
      const desk = await newDesk();
      const { tenant, person } = desk;
      // So many refusals of one address are logged in a minute, also those of other tests.
      tenant.vault.clock.advance(minute);
      const [session] = await tenant.rows('console_sessions');
      assert.equal((await attempt(desk)).status, 401);
      const path = '/logs?operation=authenticate&result=denied';
      const { data } = (await administer(tenant, 'GET', path)).body;
      assert.equal(data.length, 1);
      const [{ entity_type, entity_id, person_id, address }] = data;
      assert.equal(entity_type, 'console_session');
      assert.equal(entity_id, session?.session_id);
      assert.equal(person_id, person.id);
      assert.equal(address, '127.0.0.1');
    });
  }

  test('429: sessions that are guessed are limited by address, and one that was used is not held up', async (t) => {
    const environment = { STRONGROOM_RATE_LIMITS: 'legacy-2024' };
    const tenant = await newTenantOf(await startVault(t, engine, { environment }));
    const role = (await tenant.send('GET', '/applications/key')).body.id;
    const options = { applications: [role] };
    const person = await signInPerson(tenant.vault.url, tenant.managementKey, options);
    assert.equal((await person.send(role, 'GET', '/applications/key')).status, 200);
    const statuses = new Set<number>();
    for (let at = 0; at < 70; at++) {
      const guessed = `${cookieName}=${tenant.id}.${String(at).padStart(43, 'A')}`;
      const headers = { ...person.headersAs(role), cookie: guessed };
      statuses.add((await tenant.vault.send('GET', '/applications/key', { headers })).status);
    }
    assert.deepEqual([...statuses], [401, 429]);
    assert.equal((await person.send(role, 'GET', '/applications/key')).status, 200);
  });

  for (const [table, column] of [
    ['console_sessions', 'address'],
    ['people', 'name'],
  ] as const) {
    test(`a session whose row in ${table} was altered is refused, and the log says so`, async () => {
      const { tenant, role, person } = await newDesk();
      const alter = `update ${table} set ${column} = 'x' where person_id = '${person.id}'`;
      await engine.run(tenant.vault.place, alter);
      tenant.vault.clock.advance(1_000);
      assert.equal((await person.send(role, 'GET', '/tokens')).status, 401);
      const entries = await tenant.rows('logs');
      const altered = entries.filter(({ message }) => message.includes('altered outside'));
      assert.deepEqual(
        altered.map(({ entity_type, result }) => [entity_type, result]),
        [['console_session', 'denied']],
      );
    });
  }

  test('when the application is deleted the person may no longer act as it', async () => {
    const { tenant, role, management, person } = await newDesk();
    assert.equal((await person.send(role, 'GET', '/tokens')).status, 200);
    assert.equal((await administer(tenant, 'DELETE', `/applications/${role}`)).status, 204);
    assert.equal((await person.send(role, 'GET', '/tokens')).status, 401);
    assert.equal((await person.send(management, 'GET', '/people')).status, 200);
  });

  test('without a reason a person sees masks, whatever the role reveals, in each operation', async () => {
    const { tenant, role, person } = await newDesk();
    const { body } = await tenant.token({ type: 'card_number', data: '4242424242424242' });
    const { id } = body;
    const reading: readonly (readonly [string, string, unknown?])[] = [
      ['GET', `/tokens/${id}`],
      ['GET', '/tokens'],
      ['GET', '/v2/tokens'],
      ['GET', '/tokens/export'],
      ['POST', '/tokens/search', { query: 'type:card_number' }],
      ['POST', '/v2/tokens/search', { query: 'type:card_number' }],
      ['POST', '/detokenize', { number: `{{ ${id} }}` }],
      ['PATCH', `/tokens/${id}`, { metadata: { seen: 'yes' } }],
    ];
    for (const [method, path, sent] of reading) {
      const headers = {
        'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json',
      };
      const shown = await person.send(role, method, path, { body: sent, headers });
      assert.equal(shown.status, 200, `${method} ${path}: ${shown.text}`);
      assert.ok(!shown.text.includes('4242424242424242'), `${method} ${path}`);
    }
    const headers = { 'SVC-REASON': encodeURIComponent('chargeback 4711 – façade') };
    const revealed = await person.send(role, 'GET', `/tokens/${id}`, { headers });
    assert.equal(revealed.body.data, '4242424242424242');
    const log = await administer(tenant, 'GET', `/logs?entity_id=${id}&shown=revealed`);
    const [entry] = log.body.data;
    assert.equal(entry.message, 'Token retrieved: chargeback 4711 – façade');
    assert.equal(entry.person_name, 'Ada Lovelace');
    assert.equal(entry.person_id, person.id);
    assert.equal(entry.actor_id, role);
  });

  test('without a reason a person sends no value to a destination or to code, which may give it back', async () => {
    const { tenant, management, person } = await newDesk();
    const permissions = ['token:use', 'proxy:invoke', 'reactor:invoke'];
    const made = { name: 'sender', type: 'private', permissions };
    const sender = (await administer(tenant, 'POST', '/applications', made)).body.id;
    const applications = [management, sender];
    await administer(tenant, 'PUT', `/people/${person.id}`, { name: 'Ada', applications });
    tenant.vault.clock.advance(1_000);
    const sending: readonly (readonly [path: string, headers: object, body: object])[] = [
      [`/reactors/${sender}/react`, {}, { args: {} }],
      [`/reactors/${sender}/react-async`, {}, { args: {} }],
      ['/proxy', { 'SVC-PROXY-URL': 'https://127.0.0.1:1/' }, {}],
      ['/enrichments/bank-account-verify', {}, { token_id: 'no-such-token' }],
    ];
    for (const [path, named, body] of sending) {
      const refused = await person.send(sender, 'POST', path, { headers: { ...named }, body });
      assert.equal(refused.status, 403, `${path}: ${refused.text}`);
      const headers = { ...named, 'SVC-REASON': 'a%20test' };
      const allowed = await person.send(sender, 'POST', path, { headers, body });
      if (path !== '/proxy') assert.notEqual(allowed.status, 403, `${path}: ${allowed.text}`);
    }
  });

  test('a reason that may hold a card number, or is no line of text, is refused', async () => {
    const { role, person } = await newDesk();
    for (const reason of [
      '4242 4242 4242 4242',
      'x'.repeat(121),
      ' ',
      'a\nb',
      'a\u202eb',
      'a\u200bb',
      '%',
    ]) {
      const headers = { 'SVC-REASON': reason === '%' ? reason : encodeURIComponent(reason) };
      const refused = await person.send(role, 'GET', '/tokens', { headers });
      assert.equal(refused.status, 400, JSON.stringify(reason));
      assert.deepEqual(Object.keys(refused.body.errors), ['SVC-REASON']);
    }
  });

  test('no destination of a proxy receives the cookie of the console, or its headers', () => {
    const passedOn = (cookie: string) => {
      const rawHeaders = ['Cookie', cookie, 'SVC-CONSOLE', 'x', 'SVC-REASON', 'y', 'X-Own', '1'];
      const context = { request: { rawHeaders }, headers: {} } as unknown as RequestContext;
      return headersOfCall(context, createServiceHeaders(['SVC'])).headers;
    };
    assert.deepEqual(passedOn(`${cookieName}=secret`), ['X-Own', '1']);
    const mixed = `a=1; ${cookieName}=secret; b=2`;
    assert.deepEqual(passedOn(mixed), ['Cookie', 'a=1; b=2', 'X-Own', '1']);
  });

  test('a person can neither create nor authorize the session of a page, which would outlive them', async () => {
    const { tenant, role, person } = await newDesk();
    const key = await tenant.application({ type: 'public', permissions: ['token:create'] });
    const { nonce } = (await tenant.send('POST', '/sessions', { key })).body;
    const body = { nonce, permissions: ['token:create'] };
    assert.equal((await person.send(role, 'POST', '/sessions/authorize', { body })).status, 403);
  });

  test('the page of the console can be shown in no frame and runs no script but its own', async () => {
    const { tenant } = await newDesk();
    for (const path of ['/console', '/console/tokens/x']) {
      const page = await tenant.vault.send('GET', path);
      assert.equal(page.status, 200);
      const policy = page.headers.get('content-security-policy') ?? '';
      for (const part of [
        "default-src 'none'",
        "frame-ancestors 'none'",
        "form-action 'none'",
        "base-uri 'none'",
        "require-trusted-types-for 'script'",
        'trusted-types strongroom-editor',
      ]) {
        assert.ok(policy.includes(part), part);
      }
      assert.ok(!/unsafe|https?:/.test(policy), policy);
      assert.equal(page.headers.get('x-frame-options'), 'DENY');
    }
  });
});

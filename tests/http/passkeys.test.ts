/** Passkeys: the link adds the first one, they sign in, and each response of one is accepted once. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { presenceMs } from '../../src/access/console-sessions.ts';
import { flowLifeMs } from '../../src/access/people/flows.ts';
import { cookieName } from '../../src/http/console/credential.ts';
import { onBothEngines } from '../support/engines.ts';
import {
  Authenticator,
  beginCeremony,
  type Ceremony,
  cborBytes,
  cborText,
  endCeremony,
} from '../support/passkeys.ts';
import { signedIn, useCode } from '../support/people.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';
import { createStillClock, type Received, request } from '../support/vault.ts';

const origin = 'https://vault.example.com';
/** As a proxy in front of the vault passes on what comes from elsewhere. */
const elsewhere = { 'x-forwarded-for': '198.51.100.7', host: 'vault.example.com' };

interface Desk {
  readonly tenant: TestTenant;
  readonly url: string;
  readonly person: string;
  readonly role: string;
  newCode(): Promise<string>;
}

onBothEngines('passkeys', (engine) => {
  const newTenant = tenantsOf(engine, {
    clock: createStillClock(),
    environment: {
      STRONGROOM_PUBLIC_URL: origin,
      STRONGROOM_TRUSTED_PROXIES: '127.0.0.1',
    },
  });
  const administer = (tenant: TestTenant, method: string, path: string, body?: unknown) =>
    tenant.send(method, path, { key: tenant.managementKey, body });

  async function newDesk(): Promise<Desk> {
    const tenant = await newTenant();
    const { url } = tenant.vault;
    const own = { key: tenant.managementKey };
    const role = (await tenant.send('GET', '/applications/key', own)).body.id;
    const added = await administer(tenant, 'POST', '/people', {
      name: 'Ada Lovelace',
      applications: [role],
    });
    const person = added.body.id;
    const newCode = async () =>
      (await administer(tenant, 'POST', `/people/${person}/links`)).body.code;
    return { tenant, url, person, role, newCode };
  }

  interface Registered {
    readonly passkey: Authenticator;
    readonly response: Received;
  }

  async function register({ url, newCode }: Desk, name = 'laptop'): Promise<Registered> {
    const code = await newCode();
    const ceremony = await beginCeremony(url, { code }, elsewhere);
    const passkey = new Authenticator(origin);
    const body = { code, name, response: passkey.register(ceremony) };
    const response = await endCeremony(url, ceremony, body, elsewhere);
    assert.equal(response.status, 204, response.text);
    return { passkey, response };
  }

  const rows = async ({ tenant }: Desk) => tenant.rows('sign_in_methods');

  test('a link adds the first passkey from anywhere, once, and signs in with it', async () => {
    const desk = await newDesk();
    const { url, tenant, person, role, newCode } = desk;
    const code = await newCode();
    const alone = await useCode(url, code, elsewhere);
    assert.equal(alone.status, 403, 'elsewhere a link alone does not sign in');
    const ceremonies = [
      await beginCeremony(url, { code }, elsewhere),
      await beginCeremony(url, { code }, elsewhere),
    ] as const;
    const [first, second] = [new Authenticator(origin), new Authenticator(origin)];
    const bodies = [
      { code, name: 'one', response: first.register(ceremonies[0]) },
      { code, name: 'two', response: second.register(ceremonies[1]) },
    ] as const;
    const added = await Promise.all([
      endCeremony(url, ceremonies[0], bodies[0], elsewhere),
      endCeremony(url, ceremonies[1], bodies[1], elsewhere),
    ]);
    assert.deepEqual(added.map(({ status }) => status).sort(), [204, 401]);
    assert.equal((await rows(desk)).length, 1);
    const won = added.find(({ status }) => status === 204) as Received;
    const ada = await signedIn(url, person, won);
    assert.equal((await ada.send(role, 'GET', '/people')).status, 200);
    const [session] = await tenant.rows('console_sessions');
    assert.equal(session?.sign_in, 'passkey');
  });

  test('a passkey signs in, with a new session each time, and the log names the person', async () => {
    const desk = await newDesk();
    const { url, tenant, person, role } = desk;
    const { passkey } = await register(desk);
    tenant.vault.clock.advance(1_000);
    const ceremony = await beginCeremony(url, {}, elsewhere);
    assert.equal(ceremony.options.rpId, 'vault.example.com');
    assert.equal(ceremony.options.userVerification, 'required');
    assert.deepEqual(ceremony.options.allowCredentials, [], 'nobody learns which passkeys exist');
    const fixed = { ...elsewhere, cookie: `${cookieName}=${tenant.id}.${'B'.repeat(43)}` };
    const body = { response: passkey.signIn(ceremony) };
    const response = await endCeremony(url, ceremony, body, fixed);
    assert.ok(!response.headers.get('set-cookie')?.includes('BBBB'));
    const ada = await signedIn(url, person, response);
    assert.equal((await ada.send(role, 'GET', '/people')).status, 200);
    const log = await administer(tenant, 'GET', '/logs?entity_type=console_session&size=2');
    const entry = log.body.data.find(
      ({ operation }: { operation: string }) => operation === 'create',
    );
    assert.equal(entry.person_name, 'Ada Lovelace');
  });

  test('a response of a passkey is accepted once, and while its challenge is', async () => {
    const desk = await newDesk();
    const { url, tenant, person } = desk;
    const { passkey } = await register(desk);
    const { clock } = tenant.vault;
    clock.advance(1_000);
    const ceremony = await beginCeremony(url, {}, elsewhere);
    const body = { response: passkey.signIn(ceremony) };
    const both = await Promise.all([
      endCeremony(url, ceremony, body, elsewhere),
      endCeremony(url, ceremony, body, elsewhere),
    ]);
    assert.deepEqual(both.map(({ status }) => status).sort(), [204, 401]);
    const won = both.find(({ status }) => status === 204) as Received;
    await signedIn(url, person, won);
    await administer(tenant, 'DELETE', `/people/${person}/sessions/none`);
    assert.equal((await endCeremony(url, ceremony, body, elsewhere)).status, 401);
    clock.advance(1);
    const late = await beginCeremony(url, {}, elsewhere);
    clock.advance(flowLifeMs);
    const response = passkey.signIn(late);
    assert.equal((await endCeremony(url, late, { response }, elsewhere)).status, 401);
  });

  test('a response for another page, person, purpose, or challenge is refused, and one without a PIN', async () => {
    const desk = await newDesk();
    const { url, tenant } = desk;
    const { passkey } = await register(desk);
    const other = await newDesk();
    const { passkey: foreign } = await register(other);
    const attempts: readonly ((ceremony: Ceremony) => object)[] = [
      (ceremony) => passkey.signIn(ceremony, { origin: 'https://evil.example' }),
      (ceremony) => passkey.signIn(ceremony, { origin: 'http://vault.example.com' }),
      (ceremony) => passkey.signIn(ceremony, { rpId: 'evil.example' }),
      (ceremony) => passkey.signIn(ceremony, { type: 'webauthn.create' }),
      (ceremony) => passkey.signIn(ceremony, { challenge: 'A'.repeat(43) }),
      (ceremony) => passkey.signIn(ceremony, { isVerified: false }),
      (ceremony) => passkey.signIn(ceremony, { userHandle: foreign.userHandle }),
      (ceremony) => passkey.signIn(ceremony, { userHandle: 'AAAA' }),
      (ceremony) => foreign.signIn(ceremony, { userHandle: passkey.userHandle }),
      (ceremony) => new Authenticator(origin).signIn(ceremony, { userHandle: passkey.userHandle }),
      (ceremony) => ({ ...passkey.signIn(ceremony), id: foreign.id.toString('base64url') }),
      (ceremony) => ({ ...passkey.signIn(ceremony), response: {} }),
      () => ({}),
    ];
    const texts = new Set<string>();
    for (const [at, attempt] of attempts.entries()) {
      tenant.vault.clock.advance(1);
      const ceremony = await beginCeremony(url, {}, elsewhere);
      const refused = await endCeremony(url, ceremony, { response: attempt(ceremony) }, elsewhere);
      assert.equal(refused.status, 401, `attempt ${at}: ${refused.text}`);
      texts.add(refused.body.detail);
    }
    assert.equal(texts.size, 1, 'an attacker learns nothing');
    const own = await beginCeremony(url, {}, elsewhere);
    const adding = await beginCeremony(url, { code: await desk.newCode() }, elsewhere);
    for (const cookie of ['', adding.cookie, `${own.cookie}x`, own.cookie.slice(0, -9)]) {
      const sent = { response: passkey.signIn(own) };
      const refused = await endCeremony(url, { cookie }, sent, elsewhere);
      assert.equal(refused.status, 401, cookie);
    }
  });

  test('a copy of a passkey is found by its counter', async () => {
    const desk = await newDesk();
    const { url, tenant } = desk;
    const { passkey } = await register(desk);
    for (const [counter, status] of [
      [7, 204],
      [7, 401],
      [6, 401],
      [8, 204],
    ] as const) {
      tenant.vault.clock.advance(1);
      const ceremony = await beginCeremony(url, {}, elsewhere);
      const response = passkey.signIn(ceremony, { counter });
      assert.equal((await endCeremony(url, ceremony, { response }, elsewhere)).status, status);
    }
  });

  test('nobody who adds a passkey chooses where the vault sends a request: certificates are refused', async () => {
    const desk = await newDesk();
    const code = await desk.newCode();
    const certificates = Buffer.concat([Buffer.from([0x81]), cborBytes(Buffer.alloc(64))]);
    const statements = ['packed', 'fido-u2f', 'tpm', 'apple'].map((format) =>
      Buffer.concat([
        ...[cborText('fmt'), cborText(format), cborText('attStmt')],
        ...[Buffer.from([0xa1]), cborText('x5c'), certificates],
      ]),
    );
    for (const statement of statements) {
      const ceremony = await beginCeremony(desk.url, { code }, elsewhere);
      const response = new Authenticator(origin).register(ceremony, { statement });
      const body = { code, name: 'certified', response };
      const refused = await endCeremony(desk.url, ceremony, body, elsewhere);
      assert.equal(refused.status, 401, refused.text);
    }
    assert.deepEqual(await rows(desk), []);
  });

  test('a passkey is added for whom the link is, and by a page of the console alone', async () => {
    const [desk, other] = [await newDesk(), await newDesk()];
    const { url } = desk;
    const [code, foreign] = [await desk.newCode(), await other.newCode()];
    const ceremony = await beginCeremony(url, { code }, elsewhere);
    const response = new Authenticator(origin).register(ceremony);
    const swapped = { code: foreign, name: 'swapped', response };
    assert.equal((await endCeremony(url, ceremony, swapped, elsewhere)).status, 401);
    const { response: began } = await register(desk);
    const ada = await signedIn(url, desk.person, began);
    const forged = await desk.tenant.vault.send('POST', '/console/session/passkey/options', {
      body: { add: true },
      headers: { ...elsewhere, cookie: ada.cookie },
    });
    assert.equal(forged.status, 403, 'without the forgery token');
    const crossSite = await desk.tenant.vault.send('POST', '/console/session/passkey/options', {
      body: {},
      headers: { ...elsewhere, 'sec-fetch-site': 'cross-site' },
    });
    assert.equal(crossSite.status, 403);
    assert.equal((await rows(other)).length, 0);
  });

  test('a person has several passkeys, and each name and number has a limit', async () => {
    const desk = await newDesk();
    const { url, tenant, person } = desk;
    const { response: began } = await register(desk);
    const ada = await signedIn(url, person, began);
    const headers = { ...elsewhere, cookie: ada.cookie, 'SVC-CONSOLE': ada.forgeryToken };
    const add = async (name: string) => {
      const ceremony = await beginCeremony(url, { add: true }, headers);
      const response = new Authenticator(origin).register(ceremony);
      return endCeremony(url, ceremony, { add: true, name, response }, headers);
    };
    for (const name of ['', ' ', 'x'.repeat(81), 'two\nlines']) {
      assert.equal((await add(name)).status, 400, name);
    }
    while ((await rows(desk)).length < 20) assert.equal((await add('phone')).status, 204);
    const full = await tenant.vault.send('POST', '/console/session/passkey/options', {
      body: { add: true },
      headers,
    });
    assert.equal(full.status, 422, full.text);
    const listed = await administer(tenant, 'GET', `/people/${person}/sign-in-methods`);
    assert.equal(listed.body.length, 20);
    const names = listed.body.map(({ name }: { name: string }) => name);
    assert.deepEqual([...new Set(names)].sort(), ['laptop', 'phone']);
    assert.ok(!/public_key|credential/.test(listed.text));
  });

  test('when a passkey is removed it signs nobody in, and sessions that may have begun with it end', async () => {
    const desk = await newDesk();
    const { url, tenant, person, role } = desk;
    const { passkey, response: began } = await register(desk);
    const ada = await signedIn(url, person, began);
    const [method] = (await administer(tenant, 'GET', `/people/${person}/sign-in-methods`)).body;
    const path = `/people/${person}/sign-in-methods/${method.id}`;
    assert.equal((await administer(tenant, 'DELETE', path)).status, 204);
    assert.equal((await administer(tenant, 'DELETE', path)).status, 404);
    assert.equal((await ada.send(role, 'GET', '/people')).status, 401);
    tenant.vault.clock.advance(1);
    const ceremony = await beginCeremony(url, {}, elsewhere);
    const response = passkey.signIn(ceremony);
    assert.equal((await endCeremony(url, ceremony, { response }, elsewhere)).status, 401);
  });

  test('people remove a passkey of their own, and go on', async () => {
    const desk = await newDesk();
    const { url, tenant, person, role } = desk;
    const { response: began } = await register(desk);
    const ada = await signedIn(url, person, began);
    const other = await newDesk();
    await register(other);
    const [foreign] = await rows(other);
    const [own] = await rows(desk);
    const remove = (id = '', headers: Readonly<Record<string, string>> = {}) =>
      tenant.vault.send('DELETE', `/console/session/methods/${id}`, {
        headers: { ...elsewhere, cookie: ada.cookie, ...headers },
      });
    const token = { 'SVC-CONSOLE': ada.forgeryToken };
    assert.equal((await remove(own?.method_id)).status, 403);
    assert.equal((await remove(foreign?.method_id, token)).status, 404);
    assert.equal((await remove(own?.method_id, token)).status, 204);
    assert.equal((await ada.send(role, 'GET', '/people')).status, 200);
    assert.equal((await rows(other)).length, 1);
  });

  test('with the person go all passkeys', async () => {
    const desk = await newDesk();
    await register(desk);
    assert.equal((await administer(desk.tenant, 'DELETE', `/people/${desk.person}`)).status, 204);
    assert.deepEqual(await rows(desk), []);
  });

  test('a passkey that was altered in the database signs nobody in', async () => {
    const desk = await newDesk();
    const { url, tenant } = desk;
    const { passkey } = await register(desk);
    const stranger = await newDesk();
    const { passkey: attacker } = await register(stranger);
    const [mine] = await rows(stranger);
    const sql = `update sign_in_methods set details = '${mine?.details}' where tenant_id = '${tenant.id}'`;
    await engine.run(tenant.vault.place, sql);
    tenant.vault.clock.advance(1);
    for (const one of [passkey, attacker]) {
      const ceremony = await beginCeremony(url, {}, elsewhere);
      const response = one.signIn(ceremony, { userHandle: passkey.userHandle });
      assert.equal((await endCeremony(url, ceremony, { response }, elsewhere)).status, 401);
    }
  });

  test('the operator decides for which host passkeys are, and no header of a request', async () => {
    const desk = await newDesk();
    const ways = await desk.tenant.vault.send('GET', '/console/session/ways', {
      headers: { ...elsewhere, host: 'evil.example', 'x-forwarded-host': 'evil.example' },
    });
    assert.deepEqual(ways.body, { link: false, passkey: { origin }, oidc: null });
  });

  test('who reveals, makes a key, or changes a rule has used a passkey within five minutes', async () => {
    const desk = await newDesk();
    const { url, tenant, person, role } = desk;
    const own = (await tenant.send('GET', '/applications/key')).body.id;
    const both = { name: 'Ada Lovelace', applications: [role, own] };
    await administer(tenant, 'PUT', `/people/${person}`, both);
    const { body: token } = await tenant.token({ type: 'card_number', data: '4242424242424242' });
    const { passkey, response: began } = await register(desk);
    const ada = await signedIn(url, person, began);
    const reason = { headers: { 'SVC-REASON': 'chargeback' } };
    const application = { name: 'new', type: 'private', permissions: ['token:read'] };
    const secret = { KEY: 'sk_test_1' };
    const lending = {
      name: 'lends',
      destination_url: 'https://example.com',
      require_auth: false,
      application: { id: own },
    };
    const guarded = [
      () => ada.send(own, 'GET', `/tokens/${token.id}`, reason),
      () => ada.send(role, 'POST', `/applications/${own}/keys`),
      () => ada.send(role, 'POST', '/applications', { body: application }),
      () =>
        ada.send(role, 'PUT', `/applications/${own}`, {
          body: { name: 'old', permissions: ['token:read'] },
        }),
      () => ada.send(role, 'POST', '/proxies', { body: lending }),
      () => ada.send(role, 'POST', `/people/${person}/links`),
      () => ada.send(role, 'PUT', `/people/${person}`, { body: both }),
      () =>
        request(`${url}/console/session/passkey/options`, 'POST', {
          body: { add: true },
          headers: { ...elsewhere, cookie: ada.cookie, 'SVC-CONSOLE': ada.forgeryToken },
        }),
    ];
    const { clock } = tenant.vault;
    clock.advance(presenceMs);
    for (const [at, ask] of guarded.entries()) {
      const refused = await ask();
      assert.equal(refused.status, 403, `request ${at}: ${refused.text}`);
      assert.match(refused.body.type, /:reauthentication_required$/, `request ${at}`);
      assert.ok(!refused.text.includes('4242424242424242'));
    }
    const configured = { name: 'p', destination_url: 'https://example.com', configuration: secret };
    const { id: proxy } = (await administer(tenant, 'POST', '/proxies', configured)).body;
    const shownTo = async () => (await ada.send(role, 'GET', `/proxies/${proxy}`)).body;
    assert.deepEqual((await shownTo()).configuration, { KEY: null });
    const read = await ada.send(own, 'GET', `/tokens/${token.id}`);
    assert.equal(read.body.data, 'XXXXXXXXXXXX4242', 'what is masked needs no proof');
    assert.equal((await ada.send(role, 'GET', '/people')).status, 200);
    const headers = { ...elsewhere, cookie: ada.cookie };
    const ceremony = await beginCeremony(url, {}, headers);
    assert.equal(ceremony.options.allowCredentials.length, 1, 'for this person alone');
    const proved = await endCeremony(
      url,
      ceremony,
      { response: passkey.signIn(ceremony) },
      headers,
    );
    assert.equal(proved.status, 204, proved.text);
    assert.equal(proved.headers.get('set-cookie'), null, 'the session stays the same');
    clock.advance(1_000);
    assert.deepEqual((await shownTo()).configuration, secret);
    for (const [at, ask] of guarded.entries()) {
      const allowed = await ask();
      assert.ok(allowed.status < 300, `request ${at}: ${allowed.text}`);
    }
  });

  test('no passkey of somebody else proves that a person is present', async () => {
    const [desk, other] = [await newDesk(), await newDesk()];
    const { url, tenant, person, role } = desk;
    const { response: began } = await register(desk);
    const { passkey: foreign } = await register(other);
    const ada = await signedIn(url, person, began);
    tenant.vault.clock.advance(presenceMs);
    const headers = { ...elsewhere, cookie: ada.cookie };
    for (const userHandle of [foreign.userHandle, '']) {
      const ceremony = await beginCeremony(url, {}, headers);
      const response = foreign.signIn(ceremony, { userHandle });
      assert.equal((await endCeremony(url, ceremony, { response }, headers)).status, 401);
    }
    const refused = await ada.send(role, 'POST', `/people/${person}/links`);
    assert.match(refused.body.type, /:reauthentication_required$/);
  });
});

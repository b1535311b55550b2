/** Signing in with an identity provider: a real one, whose people, groups, and keys change. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { presenceMs } from '../../src/access/console-sessions.ts';
import { flowLifeMs } from '../../src/access/people/flows.ts';
import { hour, second } from '../../src/base/clock.ts';
import { SharedClock } from '../../src/base/shared-clock.ts';
import { cookieName } from '../../src/http/console/credential.ts';
import { readReloadable } from '../../src/runtime/config/config.ts';
import { administratorCode } from '../support/console-pages.ts';
import { onBothEngines } from '../support/engines.ts';
import {
  type BegunSignIn,
  beginSignIn,
  type Claims,
  clientId,
  clientSecret,
  endSignIn,
  type Jar,
  startProvider,
  type TestProvider,
  visitProvider,
  withoutProvider,
} from '../support/identity-provider.ts';
import { addLocalPasskey } from '../support/passkeys.ts';
import { type SignedIn, signedIn, signInPerson } from '../support/people.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { newTenant, type TestTenant } from '../support/tenant.ts';
import { type Received, startVault, TestClock, type TestVault } from '../support/vault.ts';

const publicUrl = 'https://vault.example.com';

onBothEngines('an identity provider', (engine) => {
  if (withoutProvider) {
    test('an identity provider', { skip: withoutProvider }, () => undefined);
    return;
  }
  const borrowed: (() => unknown)[] = [];
  const lender = { after: (give: () => unknown) => void borrowed.push(give) };
  let provider: TestProvider;
  let vault: TestVault;
  let environment: Readonly<Record<string, string>>;

  before(async () => {
    provider = await startProvider(lender, {
      publicUrl,
      vaultUrl: () => vault.url,
      now: () => vault.clock.now(),
    });
    const directory = temporaryDirectory(lender);
    const [secret, roles] = [join(directory, 'secret'), join(directory, 'roles.json')];
    writeFileSync(secret, `${clientSecret}\n`);
    writeFileSync(roles, '[]');
    environment = {
      STRONGROOM_PUBLIC_URL: publicUrl,
      STRONGROOM_RATE_LIMITS: 'off',
      STRONGROOM_OIDC_ISSUER: provider.issuer,
      STRONGROOM_OIDC_CLIENT_ID: clientId,
      STRONGROOM_OIDC_CLIENT_SECRET_FILE: secret,
      STRONGROOM_OIDC_NAME: 'Example',
      STRONGROOM_OIDC_ROLES: roles,
      STRONGROOM_OIDC_SCOPES: 'profile email groups',
    };
    vault = await startVault(lender, engine, { clock: clockBehind(hour), environment });
  });
  after(async () => {
    for (const give of borrowed.reverse()) await give();
  });

  /** The operator's mapping, as of now. */
  async function map(...rules: readonly object[]): Promise<void> {
    writeFileSync(environment['STRONGROOM_OIDC_ROLES'] ?? '', JSON.stringify(rules));
    const { isDone, text } = await vault.running.reload(() => readReloadable(environment));
    assert.ok(isDone, text);
  }

  interface Desk {
    readonly tenant: TestTenant;
    readonly role: string;
    readonly management: string;
    readonly subject: string;
  }

  let people = 0;

  /** A tenant, and a person whose group is mapped to one of its applications. */
  async function newDesk(claims: Claims = {}): Promise<Desk> {
    const tenant = await newTenant(vault);
    const idOf = async (key: string) =>
      (await tenant.send('GET', '/applications/key', { key })).body.id;
    const [role, management] = [await idOf(tenant.key), await idOf(tenant.managementKey)];
    people += 1;
    const subject = `person-${people}`;
    provider.people.set(subject, { name: 'Ada Lovelace', groups: ['support'], ...claims });
    await map({ value: 'support', tenant: tenant.id, application: role });
    return { tenant, role, management, subject };
  }

  const administer = (tenant: TestTenant, method: string, path: string, body?: unknown) =>
    tenant.send(method, path, { key: tenant.managementKey, body });

  async function attempt(subject: string, body: object = {}, jar?: Jar): Promise<Received> {
    vault.clock.advance(1_000);
    provider.present = subject;
    const begun = await beginSignIn(vault.url, body);
    return endSignIn(vault.url, begun, await visitProvider(begun.url, jar));
  }

  /** What begins is a session as with any other way to sign in. */
  const opened = (response: Received): Promise<SignedIn> =>
    signedIn(vault.url, '', {
      ...response,
      status: response.status === 200 ? 204 : response.status,
    });

  const signIn = async (subject: string, body: object = {}, jar?: Jar): Promise<SignedIn> =>
    opened(await attempt(subject, body, jar));

  const personIn = async (tenant: TestTenant) => {
    const [person, ...others] = await tenant.rows('people');
    assert.ok(person && others.length === 0);
    return person;
  };

  test('a person whose group is mapped acts as the application, and the log names the person', async () => {
    const { tenant, role, management, subject } = await newDesk();
    const ada = await signIn(subject);
    assert.equal((await ada.send(role, 'GET', '/tokens')).status, 200);
    assert.equal((await ada.send(management, 'GET', '/people')).status, 401);
    const person = await personIn(tenant);
    assert.equal(person.name, 'Ada Lovelace');
    const { data } = (
      await administer(tenant, 'GET', '/logs?operation=create&entity_type=console_session')
    ).body;
    assert.deepEqual(
      data.map(({ operation, person_id, person_name }: Record<string, unknown>) => [
        operation,
        person_id,
        person_name,
      ]),
      [['create', person.person_id, 'Ada Lovelace']],
    );
    const [session] = await tenant.rows('console_sessions');
    assert.equal(session?.sign_in, 'oidc');
  });

  test('who signs in again is the same person, with the name that the provider has now', async () => {
    const { tenant, subject } = await newDesk();
    await signIn(subject);
    const before = await personIn(tenant);
    provider.people.set(subject, { name: 'Ada King', groups: ['support'] });
    await signIn(subject);
    const later = await personIn(tenant);
    assert.equal(later.person_id, before.person_id);
    assert.equal(later.name, 'Ada King');
    assert.equal((await tenant.rows('sign_in_methods')).length, 1);
    assert.equal((await tenant.rows('console_sessions')).length, 2);
  });

  test('a name cannot turn or break the lines of the log', async () => {
    const { tenant, subject } = await newDesk({ name: 'Ada\u202e\n\u0000Root' });
    await signIn(subject);
    assert.equal((await personIn(tenant)).name, 'Ada Root');
  });

  test('who loses the group loses the application with the next sign-in, in every session', async () => {
    const { tenant, role, management, subject } = await newDesk({ groups: ['support', 'leads'] });
    const both = [
      { value: 'support', tenant: tenant.id, application: role },
      { value: 'leads', tenant: tenant.id, application: management },
    ];
    await map(...both);
    const ada = await signIn(subject);
    assert.equal((await ada.send(management, 'GET', '/people')).status, 200);
    provider.people.set(subject, { name: 'Ada Lovelace', groups: ['support'] });
    await signIn(subject);
    vault.clock.advance(1_000);
    assert.equal((await ada.send(management, 'GET', '/people')).status, 401);
    assert.equal((await ada.send(role, 'GET', '/tokens')).status, 200);
    provider.people.set(subject, { name: 'Ada Lovelace', groups: [] });
    assert.equal((await attempt(subject)).status, 403);
    vault.clock.advance(1_000);
    assert.equal((await ada.send(role, 'GET', '/tokens')).status, 401);
    provider.people.set(subject, { name: 'Ada Lovelace', groups: ['leads'] });
    const again = await signIn(subject);
    assert.equal((await again.send(management, 'GET', '/people')).status, 200);
  });

  test('who has no role any more is refused, which the log of the tenant says with the name', async () => {
    const { tenant, subject } = await newDesk();
    await signIn(subject);
    const { person_id } = await personIn(tenant);
    provider.people.set(subject, { name: 'Ada Lovelace' });
    vault.clock.advance(60_000);
    const refused = await attempt(subject);
    assert.equal(refused.status, 403, refused.text);
    assert.equal(refused.headers.get('set-cookie'), null);
    const path = '/logs?operation=authenticate&result=denied';
    const [entry, ...others] = (await administer(tenant, 'GET', path)).body.data;
    assert.equal(others.length, 0);
    assert.equal(entry.entity_type, 'person');
    assert.equal(entry.entity_id, person_id);
    assert.equal(entry.person_id, person_id);
    assert.equal(entry.person_name, 'Ada Lovelace');
  });

  test('what an administrator gives by hand stays when the groups change', async () => {
    const { tenant, role, management, subject } = await newDesk({ groups: ['support', 'leads'] });
    await signIn(subject);
    const { person_id } = await personIn(tenant);
    const body = { name: 'Ada Lovelace', applications: [role, management] };
    assert.equal((await administer(tenant, 'PUT', `/people/${person_id}`, body)).status, 200);
    const other = await administer(tenant, 'POST', '/applications', {
      name: 'leads',
      type: 'private',
      permissions: ['token:read'],
    });
    await map({ value: 'leads', tenant: tenant.id, application: other.body.id });
    await signIn(subject);
    const { application_ids } = await personIn(tenant);
    assert.deepEqual(JSON.parse(application_ids).sort(), [other.body.id, management].sort());
  });

  test('a person without a mapped claim gets nothing, and an unverified address is no claim', async () => {
    const { tenant, role, subject } = await newDesk({
      groups: ['other'],
      email: 'ada@example.com',
      email_verified: false,
    });
    assert.equal((await attempt(subject)).status, 403);
    const byAddress = {
      claim: 'email',
      value: 'ada@example.com',
      tenant: tenant.id,
      application: role,
    };
    await map(byAddress);
    assert.equal((await attempt(subject)).status, 403);
    assert.deepEqual(await tenant.rows('people'), []);
    provider.people.set(subject, { email: 'ada@example.com', email_verified: true });
    const ada = await signIn(subject);
    assert.equal((await ada.send(role, 'GET', '/tokens')).status, 200);
    assert.equal((await personIn(tenant)).name, 'ada@example.com');
  });

  test('what a rule gave ends with the rule, in open sessions too, and what an administrator gave stays', async () => {
    const { tenant, role, management, subject } = await newDesk();
    const ada = await signIn(subject);
    const { person_id } = await personIn(tenant);
    const body = { name: 'Ada Lovelace', applications: [role, management] };
    assert.equal((await administer(tenant, 'PUT', `/people/${person_id}`, body)).status, 200);
    await map();
    vault.clock.advance(1_000);
    assert.equal((await ada.send(role, 'GET', '/tokens')).status, 401);
    assert.equal((await ada.send(management, 'GET', '/people')).status, 200);
    assert.deepEqual(JSON.parse((await personIn(tenant)).application_ids), [management]);
    assert.ok((await tenant.logged('person')).includes('update'));
    assert.equal((await administer(tenant, 'PUT', `/people/${person_id}`, body)).status, 200);
    await map({ value: 'another', tenant: tenant.id, application: management });
    vault.clock.advance(1_000);
    assert.equal((await ada.send(role, 'GET', '/tokens')).status, 200, 'given by hand since');
    assert.equal((await attempt(subject)).status, 403);
  });

  test('an application that is deleted is no role any more, also while the mapping names it', async () => {
    const { tenant, role, subject } = await newDesk();
    const ada = await signIn(subject);
    assert.equal((await administer(tenant, 'DELETE', `/applications/${role}`)).status, 204);
    assert.equal((await ada.send(role, 'GET', '/tokens')).status, 401);
    assert.equal((await attempt(subject)).status, 403);
  });

  test('a person of one tenant gets nothing at the address of another, and no hint that it exists', async () => {
    const [own, other] = [await newDesk(), await newDesk()];
    const rule = ({ tenant, role }: Desk, value: string) => ({
      value,
      tenant: tenant.id,
      application: role,
    });
    await map(rule(own, 'support'), rule(other, 'others'));
    const texts = new Set<string>();
    for (const tenant of [other.tenant.id, 'no-such-tenant']) {
      const refused = await attempt(own.subject, { tenant });
      assert.equal(refused.status, 403);
      texts.add(refused.body.detail);
    }
    assert.equal(texts.size, 1);
    assert.deepEqual(await other.tenant.rows('people'), []);
    const ada = await signIn(own.subject, { tenant: own.tenant.id });
    assert.equal((await ada.send(other.role, 'GET', '/tokens')).status, 401);
    assert.equal((await ada.send(own.role, 'GET', '/tokens')).status, 200);
  });

  test('with roles in two tenants the person works in the one asked for, or in the first of the mapping', async () => {
    const [one, two] = [await newDesk(), await newDesk()];
    const value = 'support';
    await map(
      { value, tenant: one.tenant.id, application: one.role },
      { value, tenant: two.tenant.id, application: two.role },
    );
    const first = await signIn(one.subject);
    assert.equal((await first.send(one.role, 'GET', '/tokens')).status, 200);
    const second = await signIn(one.subject, { tenant: two.tenant.id });
    assert.equal((await second.send(two.role, 'GET', '/tokens')).status, 200);
    assert.equal((await second.send(one.role, 'GET', '/tokens')).status, 401);
    const [name] = (await two.tenant.rows('tenants')).map((row) => row.name);
    const third = await signIn(one.subject, { tenant: name });
    assert.equal((await third.send(two.role, 'GET', '/tokens')).status, 200);
  });

  test('a response signs in once: of two at the same time one, and none later', async () => {
    const { tenant, subject } = await newDesk();
    vault.clock.advance(1_000);
    provider.present = subject;
    const begun = await beginSignIn(vault.url);
    const response = await visitProvider(begun.url);
    const both = await Promise.all([
      endSignIn(vault.url, begun, response),
      endSignIn(vault.url, begun, response),
    ]);
    assert.deepEqual(both.map(({ status }) => status).sort(), [200, 401]);
    assert.equal((await endSignIn(vault.url, begun, response)).status, 401);
    assert.ok((await tenant.rows('console_sessions')).length <= 1);
  });

  test('a response counts in the browser that began, for its request, and for ten minutes', async () => {
    const { tenant, subject } = await newDesk();
    provider.present = subject;
    const [one, two] = [await beginSignIn(vault.url), await beginSignIn(vault.url)];
    const [first, second] = [await visitProvider(one.url), await visitProvider(two.url)];
    const late: BegunSignIn = await beginSignIn(vault.url);
    const last = await visitProvider(late.url);
    for (const [begun, response] of [
      [one, second],
      [two, first],
      [{ cookie: '' }, first],
      [{ cookie: `${one.cookie}x` }, first],
      [one, first.replace(/state=[^&]+/, 'state=guessed')],
      [one, first.replace(/&state=[^&]+|state=[^&]+&/, '')],
      [one, '?error=access_denied'],
      [one, ''],
    ] as const) {
      const refused = await endSignIn(vault.url, begun, response);
      assert.equal(refused.status, 401, response);
      assert.equal(refused.headers.get('set-cookie'), null);
    }
    vault.clock.advance(flowLifeMs);
    assert.equal((await endSignIn(vault.url, late, last)).status, 401);
    assert.deepEqual(await tenant.rows('console_sessions'), []);
  });

  test('the session is a new one whatever the browser sent, for no script and no other site', async () => {
    const { tenant, subject } = await newDesk();
    provider.present = subject;
    const begun = await beginSignIn(vault.url);
    const fixed = `${tenant.id}.${'B'.repeat(43)}`;
    const response = await visitProvider(begun.url);
    const headers = { cookie: `${cookieName}=${fixed}` };
    const ended = await endSignIn(vault.url, begun, response, headers);
    const cookie = ended.headers.get('set-cookie') ?? '';
    assert.ok(cookie.startsWith(`${cookieName}=`) && !cookie.includes(fixed), cookie);
    for (const attribute of ['Secure', 'HttpOnly', 'SameSite=Strict', 'Path=/']) {
      assert.ok(cookie.split('; ').includes(attribute), attribute);
    }
  });

  test('no page of another origin begins a sign-in or ends one', async () => {
    const { subject } = await newDesk();
    provider.present = subject;
    const begun = await beginSignIn(vault.url);
    const response = await visitProvider(begun.url);
    for (const headers of [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { origin: 'https://evil.example' },
    ]) {
      const refused = await endSignIn(vault.url, begun, response, headers);
      assert.equal(refused.status, 403);
      await assert.rejects(beginSignIn(vault.url, {}, headers));
    }
  });

  test('a sign-in leads back to pages of the console alone', async () => {
    const { subject } = await newDesk();
    const page = '/console/tokens?type=card';
    assert.equal((await attempt(subject, { page })).body.page, page);
    for (const foreign of [
      'https://evil.example/console',
      '//evil.example/console',
      '/\\evil.example',
      '/console.evil.example',
      '/consoles',
      'javascript:alert(1)',
      '/console/\n//evil.example',
      7,
    ]) {
      const body = { page: foreign };
      const refused = await vault.send('POST', '/console/session/oidc', { body });
      assert.equal(refused.status, 400, String(foreign));
      assert.deepEqual(Object.keys(refused.body.errors), ['page']);
    }
  });

  test('the request asks for a code with PKCE, state and nonce, and goes back to the public URL alone', async () => {
    const { url } = await beginSignIn(vault.url, {}, { host: 'evil.example' });
    assert.equal(url.origin, provider.issuer);
    const sent = Object.fromEntries(url.searchParams);
    assert.equal(sent['response_type'], 'code');
    assert.equal(sent['code_challenge_method'], 'S256');
    assert.equal(sent['redirect_uri'], `${publicUrl}/console/oidc`);
    for (const name of ['code_challenge', 'state', 'nonce']) {
      assert.match(sent[name] ?? '', /^[\w-]{43}$/, name);
    }
    const other = await beginSignIn(vault.url);
    assert.notEqual(other.url.searchParams.get('state'), sent['state']);
    assert.notEqual(other.url.searchParams.get('nonce'), sent['nonce']);
  });

  test('keys that the provider changes are followed at once, and its description is read once an hour', async () => {
    const { subject } = await newDesk();
    await signIn(subject);
    const described = () => provider.count('/.well-known/openid-configuration');
    const before = described();
    provider.rotateKeys();
    await signIn(subject);
    provider.rotateKeys();
    await signIn(subject);
    assert.equal(described(), before);
  });

  test('who was away signs in at the provider again before a key is made, as the same person', async () => {
    const { tenant, management, subject } = await newDesk({ groups: ['leads'] });
    await map({ value: 'leads', tenant: tenant.id, application: management });
    const ada = await signIn(subject);
    const body = { name: 'new', type: 'private', permissions: ['token:read'] };
    const create = () => ada.send(management, 'POST', '/applications', { body });
    assert.equal((await create()).status, 201);
    vault.clock.advance(presenceMs);
    const refused = await create();
    assert.equal(refused.status, 403);
    assert.match(refused.body.type, /:reauthentication_required$/);

    const again = async (present: string) => {
      vault.clock.advance(second);
      provider.present = present;
      const begun = await beginSignIn(vault.url, { again: true }, { cookie: ada.cookie });
      assert.equal(begun.url.searchParams.get('prompt'), 'login');
      assert.equal(begun.url.searchParams.get('max_age'), '0');
      // The provider asks in another browser, where nobody is signed in yet.
      const response = await visitProvider(begun.url);
      return { begun, response };
    };
    provider.people.set('somebody-else', { name: 'Eve', groups: ['leads'] });
    const foreign = await again('somebody-else');
    const cookie = { cookie: ada.cookie };
    assert.equal((await endSignIn(vault.url, foreign.begun, foreign.response, cookie)).status, 401);
    assert.equal((await tenant.rows('people')).length, 1);
    assert.equal((await create()).status, 403);
    const own = await again(subject);
    const ended = await endSignIn(vault.url, own.begun, own.response, cookie);
    assert.equal(ended.status, 200, ended.text);
    assert.equal(ended.body.again, true);
    assert.equal(ended.headers.get('set-cookie'), null);
    assert.equal((await create()).status, 201);
    const lone = await again(subject);
    assert.equal((await endSignIn(vault.url, lone.begun, lone.response)).status, 401, 'no session');
  });

  test('signing out of the vault leads to the sign-out of the provider, which ends every session there', async () => {
    const { tenant, role, subject } = await newDesk();
    // The provider says when somebody signed out by the clock of the machine.
    const behindMs = Date.now() - vault.clock.now();
    vault.clock.advance(Math.max(0, behindMs - 10 * second));
    const jar: Jar = new Map();
    const [one, two] = [await signIn(subject, {}, jar), await signIn(subject, {}, jar)];
    const out = await vault.send('DELETE', '/console/session', { headers: { cookie: one.cookie } });
    assert.equal(out.status, 200, out.text);
    const url = new URL(out.body.url);
    assert.equal(url.origin, provider.issuer);
    assert.equal(url.searchParams.get('post_logout_redirect_uri'), `${publicUrl}/console`);
    assert.equal((await one.send(role, 'GET', '/tokens')).status, 401);
    assert.equal((await two.send(role, 'GET', '/tokens')).status, 200);
    // Whatever the mapping says by then.
    await map();
    await signOutAt(url, jar);
    vault.clock.advance(1_000);
    assert.equal((await two.send(role, 'GET', '/tokens')).status, 401);
    assert.deepEqual(await tenant.rows('console_sessions'), []);
    assert.ok((await tenant.logged('console_session')).includes('delete'));
  });

  test('a person of the provider gets no passkey and no link, which the provider could not take away', async () => {
    const { tenant, subject } = await newDesk();
    const ada = await signIn(subject);
    await assert.rejects(addLocalPasskey(vault.url, ada), /identity provider/);
    const { person_id } = await personIn(tenant);
    const link = await administer(tenant, 'POST', `/people/${person_id}/links`);
    assert.equal(link.status, 422, link.text);
    const methods = (await administer(tenant, 'GET', `/people/${person_id}/sign-in-methods`)).body;
    const path = `/console/session/methods/${methods[0].id}`;
    const headers = { cookie: ada.cookie, 'SVC-CONSOLE': ada.forgeryToken };
    assert.equal((await vault.send('DELETE', path, { headers })).status, 403);
    assert.equal((await tenant.rows('sign_in_methods')).length, 1);
  });

  test('a person who is called Administrator at the provider is not the administrator', async () => {
    const { tenant, subject } = await newDesk({ name: 'Administrator' });
    await signIn(subject);
    const code = await administratorCode(tenant);
    const response = await vault.send('POST', '/console/session', { body: { code } });
    assert.equal(response.status, 204);
    const names = (await tenant.rows('people')).map(({ name }) => name);
    assert.deepEqual(names, ['Administrator', 'Administrator']);
  });

  test('a person who is removed loses the session at once, and comes back as a new person while mapped', async () => {
    const { tenant, role, subject } = await newDesk();
    const ada = await signIn(subject);
    const { person_id } = await personIn(tenant);
    assert.equal((await administer(tenant, 'DELETE', `/people/${person_id}`)).status, 204);
    assert.equal((await ada.send(role, 'GET', '/tokens')).status, 401);
    assert.deepEqual(await tenant.rows('sign_in_methods'), []);
    await signIn(subject);
    assert.notEqual((await personIn(tenant)).person_id, person_id);
  });

  test('a person of the vault cannot prove to be present as somebody of the provider', async () => {
    const { tenant, role, subject } = await newDesk();
    const person = await signInPerson(vault.url, tenant.managementKey, { applications: [role] });
    provider.present = subject;
    const begun = await beginSignIn(vault.url, { again: true }, { cookie: person.cookie });
    const response = await visitProvider(begun.url);
    const ended = await endSignIn(vault.url, begun, response, { cookie: person.cookie });
    assert.equal(ended.status, 401);
    assert.equal((await tenant.rows('people')).length, 1);
  });

  test('429: responses that are refused are limited by address', async (t) => {
    const limited = await startVault(t, engine, {
      environment: { ...environment, STRONGROOM_RATE_LIMITS: 'legacy-2024' },
    });
    const statuses = new Set<number>();
    for (let at = 0; at < 70; at++) {
      statuses.add((await endSignIn(limited.url, { cookie: '' }, '?code=guessed')).status);
    }
    assert.deepEqual([...statuses], [401, 429]);
  });

  test('503 while the provider cannot be reached, and nobody is refused for it later', async (t) => {
    const gone = await startProvider(t, { publicUrl });
    await gone.stop();
    const lone = await startVault(t, engine, {
      environment: { ...environment, STRONGROOM_OIDC_ISSUER: gone.issuer },
    });
    const refused = await lone.send('POST', '/console/session/oidc', { body: {} });
    assert.equal(refused.status, 503, refused.text);
    assert.ok(!refused.text.includes('127.0.0.1'));
  });

  test('the sign-in page learns the name of the provider, and where it sends people back', async () => {
    const ways = (await vault.send('GET', '/console/session/ways')).body;
    assert.deepEqual(ways.oidc, { name: 'Example', origin: publicUrl });
  });
});

/** Stands still. The provider goes by the clock of the machine, and has to be ahead of what a test advances. */
function clockBehind(milliseconds: number): TestClock {
  return new TestClock(SharedClock.standingAt(Date.now() - milliseconds).memory);
}

/** Confirms at the provider, as its page does. */
async function signOutAt(url: URL, jar: Jar): Promise<void> {
  const cookie = () => [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
  const page = await fetch(url, { headers: { cookie: cookie() } });
  for (const line of page.headers.getSetCookie()) {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
    jar.set(name, value);
  }
  const [, xsrf = ''] = /name="xsrf" value="([^"]+)"/.exec(await page.text()) ?? [];
  const confirmed = await fetch(new URL('/session/end/confirm', url), {
    method: 'POST',
    redirect: 'manual',
    headers: { cookie: cookie(), 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ xsrf, logout: 'yes' }),
  });
  assert.equal(confirmed.status, 303, await confirmed.text());
}

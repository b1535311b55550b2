/** An identity provider that lies, or somebody who pretends to be it: no such word lets anybody in. */
import assert from 'node:assert/strict';
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { SignJWT } from 'jose';
import { presenceMs } from '../../src/access/console-sessions.ts';
import { hour, minute, second } from '../../src/base/clock.ts';
import { readReloadable } from '../../src/runtime/config/config.ts';
import { onBothEngines } from '../support/engines.ts';
import {
  type BegunSignIn,
  beginSignIn,
  clientId,
  endSignIn,
} from '../support/identity-provider.ts';
import { signedIn } from '../support/people.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { newTenant, type TestTenant } from '../support/tenant.ts';
import { createStillClock, request, startVault, type TestVault } from '../support/vault.ts';

const publicUrl = 'https://vault.example.com';
const logoutEvent = 'http://schemas.openid.net/event/backchannel-logout';

type Body = Readonly<Record<string, unknown>>;

/** What the provider says next, where that is not the truth. */
interface Lies {
  readonly header?: Body;
  readonly claims?: Body;
  /** In place of the whole token. */
  readonly token?: (truth: string) => string;
  readonly key?: KeyObject | Uint8Array;
  readonly description?: Body;
  /** In place of the response of the token endpoint. */
  readonly response?: { readonly status: number; readonly type?: string; readonly text: string };
}

onBothEngines('an identity provider that lies', (engine) => {
  const borrowed: (() => unknown)[] = [];
  const lender = { after: (give: () => unknown) => void borrowed.push(give) };
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const clock = createStillClock();
  const called: string[] = [];
  let vault: TestVault;
  let tenant: TestTenant;
  let issuer = '';
  let environment: Readonly<Record<string, string>> = {};
  let lies: Lies = {};
  let nonce = '';

  const seconds = () => Math.floor(clock.now() / second);
  const idToken = async (): Promise<string> => {
    const truth = {
      iss: issuer,
      aud: clientId,
      sub: 'ada',
      nonce,
      name: 'Ada Lovelace',
      groups: ['support'],
      iat: seconds(),
      exp: seconds() + 300,
      auth_time: seconds(),
    };
    const token = await sign({ ...truth, ...lies.claims }, lies);
    return lies.token?.(token) ?? token;
  };
  const sign = (claims: Body, { header, key = privateKey }: Lies): Promise<string> => {
    const given = Object.entries(claims).filter(([, value]) => value !== undefined);
    return new SignJWT(Object.fromEntries(given))
      .setProtectedHeader({ alg: 'RS256', kid: 'one', ...header })
      .sign(key);
  };

  /** Sends notices that a person has signed out, as the provider does, or lies. */
  const noticeTo =
    ({ url }: TestVault) =>
    async (claims: Body, told: Lies = {}, edit = (token: string) => token) => {
      const truth = {
        iss: issuer,
        aud: clientId,
        sub: 'ada',
        iat: seconds(),
        exp: seconds() + 120,
        jti: 'one',
        events: { [logoutEvent]: {} },
      };
      const token = edit(await sign({ ...truth, ...claims }, told));
      return request(`${url}/console/session/oidc/logout`, 'POST', {
        body: new URLSearchParams({ logout_token: token }).toString(),
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
      });
    };

  before(async () => {
    const server = createServer(async (asked, response) => {
      const path = (asked.url ?? '').split('?')[0] ?? '';
      called.push(path);
      const bodies: Readonly<Record<string, () => Body | Promise<Body>>> = {
        '/.well-known/openid-configuration': () => ({
          issuer,
          authorization_endpoint: `${issuer}/authorize`,
          token_endpoint: `${issuer}/token`,
          jwks_uri: `${issuer}/keys`,
          response_types_supported: ['code'],
          subject_types_supported: ['public'],
          id_token_signing_alg_values_supported: ['RS256', 'HS256', 'none'],
          authorization_response_iss_parameter_supported: true,
          ...lies.description,
        }),
        '/keys': () => ({
          keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'one' }],
        }),
        '/token': async () => ({
          access_token: 'access',
          token_type: 'Bearer',
          id_token: await idToken(),
        }),
      };
      const body = await bodies[path]?.();
      const {
        status,
        type = 'application/json',
        text,
      } = (path === '/token' ? lies.response : undefined) ?? {
        status: body ? 200 : 404,
        text: JSON.stringify(body ?? {}),
      };
      response.writeHead(status, { 'content-type': type, location: `${issuer}/elsewhere` });
      response.end(text);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    lender.after(() => {
      server.closeAllConnections();
      server.close();
    });
    issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const roles = join(temporaryDirectory(lender), 'roles.json');
    writeFileSync(roles, '[]');
    environment = {
      STRONGROOM_PUBLIC_URL: publicUrl,
      STRONGROOM_RATE_LIMITS: 'off',
      STRONGROOM_OIDC_ISSUER: issuer,
      STRONGROOM_OIDC_CLIENT_ID: clientId,
      STRONGROOM_OIDC_ROLES: roles,
    };
    vault = await startVault(lender, engine, { clock, environment });
    tenant = await newTenant(vault);
    const key = tenant.managementKey;
    const application = (await tenant.send('GET', '/applications/key', { key })).body.id;
    writeFileSync(roles, JSON.stringify([{ value: 'support', tenant: tenant.id, application }]));
    const { isDone, text } = await vault.running.reload(() => readReloadable(environment));
    assert.ok(isDone, text);
  });
  after(async () => {
    for (const give of borrowed.reverse()) await give();
  });

  async function begin(body: object = {}, headers = {}): Promise<BegunSignIn> {
    clock.advance(second);
    const begun = await beginSignIn(vault.url, body, headers);
    nonce = begun.url.searchParams.get('nonce') ?? '';
    return begun;
  }

  const responseTo = ({ url }: BegunSignIn, more: Readonly<Record<string, string>> = {}) => {
    const state = url.searchParams.get('state') ?? '';
    return `?${new URLSearchParams({ code: 'code', state, iss: issuer, ...more })}`;
  };

  async function attempt(told: Lies, more: Readonly<Record<string, string>> = {}) {
    lies = {};
    const begun = await begin();
    lies = told;
    return endSignIn(vault.url, begun, responseTo(begun, more));
  }

  test('the truth lets the person in', async () => {
    const response = await attempt({});
    assert.equal(response.status, 200, response.text);
  });

  const foreign = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const unsigned = (truth: string) => {
    const header = Buffer.from(JSON.stringify({ alg: 'none' })).toString('base64url');
    return `${header}.${truth.split('.')[1]}.`;
  };
  const edited = (truth: string) => {
    const [header, payload = '', signature] = truth.split('.');
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString());
    const other = Buffer.from(JSON.stringify({ ...claims, sub: 'eve' })).toString('base64url');
    return [header, other, signature].join('.');
  };
  const publicPem = Buffer.from(publicKey.export({ format: 'pem', type: 'spki' }));
  const tokens: Readonly<Record<string, () => Lies>> = {
    'of another issuer': () => ({ claims: { iss: 'https://evil.example' } }),
    'for another client': () => ({ claims: { aud: 'another' } }),
    'for another client too, and not authorized for this one': () => ({
      claims: { aud: [clientId, 'another'], azp: 'another' },
    }),
    'with the nonce of another sign-in': () => ({ claims: { nonce: 'another' } }),
    'without a nonce': () => ({ claims: { nonce: undefined } }),
    'that has expired': () => ({ claims: { iat: seconds() - 600, exp: seconds() - 60 } }),
    'that never expires': () => ({ claims: { exp: undefined } }),
    'that is not valid yet': () => ({ claims: { nbf: seconds() + 300 } }),
    'without a subject': () => ({ claims: { sub: undefined } }),
    'with an empty subject': () => ({ claims: { sub: '' } }),
    'with a subject that is no text': () => ({ claims: { sub: 7 } }),
    'with a time that is no number': () => ({ claims: { auth_time: 'now' } }),
    'signed with a key of another': () => ({ key: foreign.privateKey }),
    'signed with a key that it does not show': () => ({ header: { kid: 'two' } }),
    'with claims that were changed': () => ({ token: edited }),
    'with the algorithm none': () => ({ token: unsigned }),
    'signed with its public key as a secret': () => ({ header: { alg: 'HS256' }, key: publicPem }),
    'that is no token': () => ({ token: () => 'token' }),
  };
  for (const [which, told] of Object.entries(tokens)) {
    test(`an ID token ${which} is refused`, async () => {
      const before = await tenant.rows('console_sessions');
      const refused = await attempt(told());
      assert.equal(refused.status, 401, refused.text);
      assert.equal(refused.headers.get('set-cookie'), null);
      assert.deepEqual(await tenant.rows('console_sessions'), before);
      assert.match(refused.body.detail, /^The sign-in with the identity provider was not accepted/);
    });
  }

  const responses: Readonly<Record<string, NonNullable<Lies['response']>>> = {
    'without an ID token': { status: 200, text: '{"access_token":"a","token_type":"Bearer"}' },
    'that is not JSON': { status: 200, text: '<html>' },
    'of another media type': { status: 200, type: 'text/html', text: '{}' },
    'with an error': { status: 400, text: '{"error":"invalid_grant"}' },
    'that fails': { status: 500, text: '{}' },
    'with a redirect': { status: 307, text: '' },
  };
  for (const [which, response] of Object.entries(responses)) {
    test(`a token response ${which} is refused, and followed nowhere`, async () => {
      const refused = await attempt({ response });
      assert.equal(refused.status, 401, refused.text);
      assert.ok(!called.includes('/elsewhere'));
    });
  }

  test('a token response without an end is not read to the end', async () => {
    const text = ' '.repeat(300_000);
    assert.equal((await attempt({ response: { status: 200, text } })).status, 503);
  });

  test('a response signs in once, also where the provider takes its code again', async () => {
    lies = {};
    for (const sub of ['ada', 'somebody new']) {
      const begun = await begin();
      lies = { claims: { sub } };
      const response = responseTo(begun);
      const both = await Promise.all([
        endSignIn(vault.url, begun, response),
        endSignIn(vault.url, begun, response),
      ]);
      assert.deepEqual(both.map(({ status }) => status).sort(), [200, 401], sub);
      assert.equal((await endSignIn(vault.url, begun, response)).status, 401, sub);
    }
  });

  test('a response that another provider gave is refused before its code is sent anywhere (mix-up)', async () => {
    const before = called.filter((path) => path === '/token').length;
    for (const iss of ['https://evil.example', '']) {
      assert.equal((await attempt({}, { iss })).status, 401);
    }
    const begun = await begin();
    const unnamed = responseTo(begun).replace(/&iss=[^&]*/, '');
    assert.equal((await endSignIn(vault.url, begun, unnamed)).status, 401);
    const twice = `${responseTo(begun)}&code=other`;
    assert.equal((await endSignIn(vault.url, begun, twice)).status, 401);
    assert.equal(called.filter((path) => path === '/token').length, before);
  });

  test('a description cannot speak for another issuer, or lead the vault into its own network', async (t) => {
    const own = await internalServer(t);
    for (const [description, status] of [
      [{ issuer: 'https://evil.example' }, 503],
      [{ authorization_endpoint: 'javascript:alert(1)' }, 503],
      [{ authorization_endpoint: undefined }, 503],
      [{ token_endpoint: `${own.url}/token` }, 503],
      [{ jwks_uri: `${own.url}/keys` }, 503],
      [{ jwks_uri: 'https://10.0.0.7/keys' }, 503],
    ] as const) {
      // The description is read again after an hour.
      clock.advance(hour);
      lies = { description };
      const begun = await begin().catch(() => undefined);
      if (begun) {
        const refused = await endSignIn(vault.url, begun, responseTo(begun));
        assert.equal(refused.status, status, `${JSON.stringify(description)}: ${refused.text}`);
      }
    }
    assert.equal(own.requests(), 0);
    clock.advance(hour);
    assert.equal((await attempt({})).status, 200);
  });

  test('who proves again to be present does it now: an old proof, or none, is not accepted', async () => {
    const response = await attempt({ claims: { auth_time: undefined } });
    const ada = await signedIn(vault.url, '', { ...response, status: 204 });
    const [role] = JSON.parse((await tenant.rows('people'))[0]?.application_ids ?? '[]');
    const body = { name: 'new', type: 'private', permissions: ['token:read'] };
    const create = async () => (await ada.send(role, 'POST', '/applications', { body })).status;
    assert.equal(await create(), 403, 'the provider has not said when');
    for (const [auth_time, status, detail] of [
      [() => undefined, 401, /does not say when you signed in \(the claim auth_time\)/],
      [() => seconds() - presenceMs / second, 401, /within the last five minutes/],
      [() => seconds() * second, 401, /does not say when you signed in/],
      [() => seconds() - presenceMs / second + 60.1234567, 200, undefined],
    ] as const) {
      lies = {};
      const begun = await begin({ again: true }, { cookie: ada.cookie });
      lies = { claims: { auth_time: auth_time() } };
      const cookie = { cookie: ada.cookie };
      const ended = await endSignIn(vault.url, begun, responseTo(begun), cookie);
      assert.equal(ended.status, status, ended.text);
      if (detail) assert.match(ended.body.detail, detail);
    }
    assert.equal(await create(), 201);
    clock.advance(61 * second);
    assert.equal(await create(), 403, 'presence goes by when it was proved');
  });

  test('each notice of many counts, and what the provider did not sign is limited', async (t) => {
    lies = {};
    const limited = { ...environment, STRONGROOM_RATE_LIMITS: 'legacy-2024' };
    const send = noticeTo(await startVault(t, engine, { clock, environment: limited }));
    const before = called.length;
    for (let at = 0; at < 120; at++) {
      assert.equal((await send({ sub: `person ${at}` })).status, 200, `notice ${at}`);
    }
    const statuses = new Set<number>();
    for (let at = 0; at < 120; at++) {
      statuses.add((await send({}, { key: foreign.privateKey })).status);
    }
    assert.deepEqual([...statuses], [401, 429]);
    assert.equal((await send({ sub: 'the last one' })).status, 200);
    assert.equal(called.slice(before).filter((path) => path === '/keys').length, 1);
  });

  test('a logout token ends what began before it, and nothing else is taken for one', async () => {
    lies = {};
    const response = await attempt({});
    const ada = await signedIn(vault.url, '', { ...response, status: 204 });
    const [role] = JSON.parse((await tenant.rows('people'))[0]?.application_ids ?? '[]');
    const stands = async () => {
      clock.advance(second);
      return (await ada.send(role, 'GET', '/people')).status === 200;
    };
    const send = noticeTo(vault);
    const { created_at } = (await tenant.rows('console_sessions'))[0] ?? { created_at: 0 };
    for (const refused of [
      await send({ iss: 'https://evil.example' }),
      await send({ aud: 'another' }),
      await send({ events: undefined }),
      await send({ events: { other: {} } }),
      await send({ nonce: 'of an ID token' }),
      await send({ jti: undefined }),
      await send({ iat: seconds() - (10 * minute) / second }),
      await send({ exp: seconds() - 60 }),
      await send({}, { key: foreign.privateKey }),
      await send({}, { header: { alg: 'HS256' }, key: publicPem }),
      await send({}, {}, unsigned),
    ]) {
      assert.equal(refused.status, 401, refused.text);
    }
    const nameless = await send({ sub: undefined, sid: 'session' });
    assert.equal(nameless.status, 400, nameless.text);
    assert.match(nameless.text, /"logout_token":\["must name the person in sub/);
    assert.ok(await stands());
    assert.equal((await send({ sub: 'eve' })).status, 200);
    const earlier = Math.floor(created_at / second) - 1;
    assert.equal((await send({ iat: earlier })).status, 200, 'sent again, or late');
    assert.ok(await stands());
    assert.equal((await send({ iat: seconds() + 0.1234567 })).status, 200, 'times have fractions');
    assert.ok(!(await stands()));
  });

  for (const [table, column] of [
    ['sign_in_methods', 'name'],
    ['people', 'name'],
  ] as const) {
    test(`a row of ${table} that was altered outside the vault lets nobody in`, async () => {
      assert.equal((await attempt({ claims: { sub: table } })).status, 200);
      const before = (await tenant.rows('console_sessions')).length;
      const [method] = (await tenant.rows('sign_in_methods')).filter(({ details }) =>
        details.includes(`"${table}"`),
      );
      const alter = `update ${table} set ${column} = 'x' where person_id = '${method?.person_id}'`;
      await engine.run(vault.place, alter);
      assert.equal((await attempt({ claims: { sub: table } })).status, 500);
      assert.equal((await tenant.rows('console_sessions')).length, before);
    });
  }
});

/** Something at another port of this machine. */
async function internalServer(t: { after(give: () => void): void }) {
  let count = 0;
  const server = createServer((_, response) => {
    count += 1;
    response.end('{}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, requests: () => count };
}

/** A tour: every declared route, with what the vault has and with what it has not, and every way to find tokens. */
import assert from 'node:assert/strict';
import type { Route } from '../../src/http/protocol/route.ts';
import { encrypted } from './client-encryption.ts';
import { linesSent } from './lines.ts';
import { addLocalPasskey } from './passkeys.ts';
import { signInPerson } from './people.ts';
import { requestsWith } from './requests.ts';
import { sendSensitiveTraffic } from './sensitive-traffic.ts';
import {
  createApplication,
  managementKey,
  type Received,
  request,
  revealEverything,
  type Sent,
} from './vault.ts';

/** Leaves nothing behind: the tenant is deleted at the end. */
export async function takeTour(
  url: string,
  routes: readonly Route[],
  giveHost: (name: string) => Promise<unknown>,
): Promise<void> {
  await sendSensitiveTraffic(url);
  const permissions = ['token-intent:create', 'token-intent:read', 'token-intent:delete'];
  const key = await createApplication(url, { permissions, rules: [revealEverything] });
  const send = (method: string, path: string, sent: Sent = {}) =>
    request(url + path, method, { key, ...sent });
  const { id } = await makeTokens(send);
  await findTokens(send, id);
  await holdSession(url, send);
  await letPeopleIn(url);
  for (const name of ['tour.example.com', 'moved.example.com']) await giveHost(name);
  await manageProxies(send);
  await runReactors(url, send);
  await manageWebhooks(send);
  await expect(200, send('GET', '/readyz'));
  for (const route of routes.filter(({ method }) => method !== 'DELETE')) {
    for (const some of [key, managementKey]) await trySome({ url, route, key: some, id });
  }
  const self = await send('DELETE', '/tenants/self', { key: managementKey });
  assert.equal(self.status, 204, self.text);
}

type Send = (method: string, path: string, sent?: Sent) => Promise<Received>;

async function makeTokens(send: Send): Promise<{ readonly id: string }> {
  const body = {
    type: 'token',
    data: 'Ada',
    metadata: { kind: 'name' },
    search_indexes: ['{{ data }}', '{{ data | last4 }}'],
    expires_at: new Date(Date.now() + 86_400_000).toISOString(),
  };
  const { id } = (await expect(201, send('POST', '/tokens', { body }))).body;
  await expect(
    200,
    send('POST', '/tokenize', { body: ['Grace', { type: 'token', data: 'Alan' }] }),
  );
  await expect(200, send('POST', '/tokens/bulk', linesSent([body, { ...body, id: 'tour-1' }])));
  await expect(200, send('PATCH', '/tokens/tour-1', { body: { containers: ['/tour/'] } }));
  await expect(204, send('DELETE', '/tokens/tour-1'));
  const intent = await expect(
    201,
    send('POST', '/token-intents', { body: { type: 'token', data: 1 } }),
  );
  const converted = { body: { token_intent_id: intent.body.id } };
  await expect(201, send('POST', '/tokens', converted));
  const pair = await expect(201, send('POST', '/keys', { key: managementKey }));
  const sealed = await encrypted(pair.body, '"Ada"', { jti: 'tour' });
  await expect(201, send('POST', '/tokens', { body: { type: 'token', encrypted: sealed } }));
  return { id };
}

async function findTokens(send: Send, id: string): Promise<void> {
  const found = await expect(200, send('GET', '/v2/tokens?size=2'));
  const { next } = found.body.pagination;
  for (const query of [
    `start=${next}`,
    'container=/general/',
    'type=token',
    'metadata.kind=name',
    'fingerprint=x',
    'container=/pci/&type=card&metadata.kind=name',
  ]) {
    await expect(200, send('GET', `/v2/tokens?${query}`));
    await expect(200, send('GET', `/tokens/export?${query.replace(/^start=.*/, '')}`));
  }
  for (const query of [`id=${id}`, 'metadata.kind=name', 'page=2&size=2']) {
    await expect(200, send('GET', `/tokens?${query}`));
  }
  for (const query of ['data:Ada', `id:${id}`, 'data:Ada AND container:"/general/"', 'type:card']) {
    for (const path of ['/tokens/search', '/v2/tokens/search']) {
      await expect(200, send('POST', path, { body: { query } }));
    }
  }
  await expect(200, send('POST', '/detokenize', { body: { tokens: [`{{ ${id} }}`] } }));
  await expect(200, send('POST', '/detokenize', { body: [`{{ ${id} }}`] }));
  for (const query of ['', '?entity_type=token', `?entity_type=token&entity_id=${id}`, '?page=2']) {
    await expect(200, send('GET', `/logs${query}`, { key: managementKey }));
  }
}

async function holdSession(url: string, send: Send): Promise<void> {
  const key = await createApplication(url, { type: 'public', permissions: ['token:create'] });
  const { nonce, session_key } = (await expect(201, send('POST', '/sessions', { key }))).body;
  const body = { nonce, permissions: ['token:create'] };
  await expect(200, send('POST', '/sessions/authorize', { body }));
  const token = { type: 'token', data: 'in a session' };
  await expect(201, send('POST', '/tokens', { key: session_key, body: token }));
}

async function letPeopleIn(url: string): Promise<void> {
  const own = await request(`${url}/applications/key`, 'GET', { key: managementKey });
  const application = own.body.id;
  const people = { applications: [application] };
  const person = await signInPerson(url, managementKey, people);
  await expect(200, person.send(application, 'GET', '/people'));
  await expect(200, person.send(application, 'GET', `/people/${person.id}/sessions`));
  await addLocalPasskey(url, person);
  const methods = `/people/${person.id}/sign-in-methods`;
  const [added] = (await expect(200, person.send(application, 'GET', methods))).body;
  await expect(204, person.send(application, 'DELETE', `${methods}/${added.id}`));
  const again = await signInPerson(url, managementKey, people);
  await addLocalPasskey(url, again);
  await expect(204, again.send(application, 'DELETE', '/console/session'));
  await expect(204, request(`${url}/people/${person.id}`, 'DELETE', { key: managementKey }));
}

async function manageProxies(send: Send): Promise<void> {
  const key = managementKey;
  const body = {
    name: 'tour',
    destination_url: 'https://psp.example.com',
    proxy_host: 'tour.example.com',
  };
  const { id } = (await expect(201, send('POST', '/proxies', { key, body }))).body;
  await expect(200, send('GET', '/proxies?name=t*', { key }));
  const moved = { ...body, proxy_host: 'moved.example.com' };
  await expect(200, send('PUT', `/proxies/${id}`, { key, body: moved }));
  await expect(204, send('PATCH', `/proxies/${id}`, { key, body: { proxy_host: null } }));
  await expect(204, send('DELETE', `/proxies/${id}`, { key }));
  await expect(201, send('POST', '/proxies', { key, body }));
}

async function runReactors(url: string, send: Send): Promise<void> {
  const key = managementKey;
  const body = { name: 'tour', code: "module.exports = () => ({ raw: 1, tokenize: 'x' })" };
  const { id } = (await expect(201, send('POST', '/reactors', { key, body }))).body;
  await expect(200, send('GET', '/reactors?name=t*', { key }));
  await expect(200, send('PUT', `/reactors/${id}`, { key, body }));
  await expect(204, send('PATCH', `/reactors/${id}`, { key, body: { name: 'moved' } }));
  const permissions = ['reactor:invoke', 'token:create'];
  const calling = { key: await createApplication(url, { permissions }), body: {} };
  await expect(200, send('POST', `/reactors/${id}/react`, calling));
  await expect(202, send('POST', `/reactors/${id}/react-async`, calling));
  await expect(200, send('GET', `/reactors/${id}/logs`, { key }));
  await expect(204, send('DELETE', `/reactors/${id}`, { key }));
}

async function manageWebhooks(send: Send): Promise<void> {
  const key = managementKey;
  const body = {
    name: 'tour',
    url: 'https://receiver.invalid/',
    events: ['token.created', 'token.read'],
  };
  const { id } = (await expect(201, send('POST', '/webhooks', { key, body }))).body;
  await expect(201, send('POST', '/tokens', { body: { type: 'token', data: 'with an event' } }));
  const test = await expect(202, send('POST', `/webhooks/${id}/test`, { key }));
  for (const query of ['', '?state=waiting', '?size=1']) {
    await expect(200, send('GET', `/webhooks/${id}/deliveries${query}`, { key }));
  }
  const path = `/webhooks/${id}/deliveries/${test.body.id}/redeliver`;
  await expect(202, send('POST', path, { key }));
  const replayed = { since: '2026-01-01T00:00:00Z' };
  await expect(202, send('POST', `/webhooks/${id}/replay`, { key, body: replayed }));
  await expect(200, send('POST', `/webhooks/${id}/secret/rotate`, { key }));
  await expect(200, send('PUT', `/webhooks/${id}`, { key, body: { ...body, status: 'disabled' } }));
  await expect(200, send('PUT', `/webhooks/${id}`, { key, body: { ...body, status: 'enabled' } }));
  await expect(204, send('DELETE', `/webhooks/${id}`, { key }));
  await expect(201, send('POST', '/webhooks', { key, body }));
}

interface Some {
  readonly url: string;
  readonly route: Route;
  readonly key: string;
  readonly id: string;
}

/** Whatever the answer: that it asked the database is enough. */
async function trySome({ url, route, key, id }: Some): Promise<void> {
  const plausible = { id, type: 'token', data: 'own', name: 'own', permissions: ['token:read'] };
  for (const { method, path, body, mediaType } of requestsWith(route, id, plausible)) {
    const headers = body === undefined ? {} : { 'content-type': mediaType };
    const text = body === undefined ? {} : { body: JSON.stringify(body) };
    await request(url + path, method, { key, headers, ...text });
  }
}

async function expect(status: number, sent: Promise<Received>): Promise<Received> {
  const answer = await sent;
  assert.equal(answer.status, status, answer.text);
  return answer;
}

/**
 * A caller pays for processor time, bytes and slots, not for requests. This law knows of no route and of no finding:
 * whatever one account floods, on each route and with each kind of key, is served behind the requests of another.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Route } from '../../src/http/protocol/route.ts';
import { engineOf } from '../support/engines.ts';
import { type FloodedRequest, startFlood } from '../support/flood.ts';
import { requestsWith } from '../support/requests.ts';
import { newTenant, type TestTenant } from '../support/tenant.ts';
import { routesOf, startVault, type TestVault, threads } from '../support/vault.ts';

/** On one event loop; with several threads each connection meets another one. */
const skip = threads !== '1' && 'each thread has an order of its own';

/** At once, on as many connections. */
const floodCount = 1_000;
/**
 * Of the flood, between two requests of another that are sent one after the other: some turns of the event loop full of
 * the cheapest of them, however many there are. Where nothing keeps them apart it is nearly all of the flood.
 */
const betweenMax = 600;

/** The most that a public key may send, and the most of it is wrong. */
const members = Object.fromEntries(Array.from({ length: 9_900 }, (_, at) => [`a${at}`, 1]));

/** The least valid request, or where it has a body one that costs as much as a request may. */
function requestOf(route: Route, key: string | undefined): FloodedRequest {
  const plausible = { name: 'n', type: 'token', data: 'x', permissions: ['token:read'] };
  const [made] = requestsWith(route, 'none', plausible);
  assert.ok(made);
  const { method, path, body, mediaType } = made;
  const headers = {
    ...(key !== undefined && { 'svc-api-key': key }),
    ...(body !== undefined && { 'content-type': mediaType }),
  };
  const sent = { method, path, headers };
  if (method === 'GET' || method === 'DELETE') return { ...sent, body: undefined };
  const isLarge = key !== undefined && body !== undefined;
  const large = JSON.stringify({ ...(body as object | undefined), ...members });
  return { ...sent, body: isLarge ? large : body === undefined ? undefined : JSON.stringify(body) };
}

async function sendersOf(tenant: TestTenant): Promise<Record<string, string | undefined>> {
  const visitor = { type: 'public', permissions: ['token:create', 'token-intent:create'] };
  const key = await tenant.application(visitor);
  const session = await tenant.send('POST', '/sessions', { key });
  return {
    'no key': undefined,
    'a public key': key,
    'a session': session.body.session_key,
    'a private key': tenant.key,
    'a management key': tenant.managementKey,
  };
}

test('of what one account floods, few are served between two requests of another', {
  skip,
}, async (t) => {
  const environment = { STRONGROOM_ACCESS_LOG: 'on' };
  const vault = await startVault(t, engineOf('sqlite'), { environment });
  const [hostile, other] = [await newTenant(vault), await newTenant(vault)];
  const { body: token } = await other.token({ type: 'token', data: 'of the other' });
  assert.equal((await other.send('GET', `/tokens/${token.id}`)).status, 200);
  const flood = startFlood(t, vault.url);
  const trace = 'the-other';
  // Of a known key, and nothing is waited for but its turn: while a request waits for the disk, which on a busy machine
  // can take longer than all of the flood, serving the flood is right.
  const ask = () => other.send('GET', '/nowhere', { headers: { 'svc-trace-id': trace } });
  const routes = (await routesOf(vault)).filter(
    ({ method, path }) => method !== 'DELETE' || path !== '/tenants/self',
  );
  // Code is compiled, and what requests cost is known.
  await flood.send([{ method: 'GET', path: '/tokens', headers: {}, body: undefined }], 200);
  for (const [name, key] of Object.entries(await sendersOf(hostile))) {
    const made = routes.map((route) => requestOf(route, key));
    const kinds = {
      small: made.filter(({ body }) => !body),
      large: made.filter(({ body }) => body),
    };
    for (const [kind, sent] of Object.entries(kinds)) {
      vault.logged.length = 0;
      let isOver = false;
      const flooding = flood.send(sent, floodCount).finally(() => {
        isOver = true;
      });
      while (!isOver) assert.equal((await ask()).status, 404);
      await flooding;
      const most = mostBetween(vault.logged, trace);
      assert.ok(most <= betweenMax, `${most} ${kind} ones with ${name} between two of another`);
    }
  }
});

/** The status of a request that waited too long for its turn. */
const refusedStatus = 429;

/**
 * On a busy machine many of the flood wait too long at the same moment. They are refused, and none of their bodies is
 * parsed, so the other waits for none of them.
 */
function mostBetween(logged: TestVault['logged'], trace: string): number {
  let most = 0;
  let between = 0;
  for (const { message, fields } of logged) {
    if (message !== 'request' || fields?.['status'] === refusedStatus) continue;
    between = fields?.['trace_id'] === trace ? 0 : between + 1;
    most = Math.max(most, between);
  }
  return most;
}

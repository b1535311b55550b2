/** Browsers call the vault themselves, with public keys and sessions, from any origin. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { engineOf } from '../support/engines.ts';
import { startVault } from '../support/vault.ts';

const origin = { origin: 'https://shop.example' };

test('a preflight is answered 204 for every path, and allows our headers under each prefix', async (t) => {
  const environment = { STRONGROOM_HEADER_PREFIXES: 'SVC,BT' };
  const { send } = await startVault(t, engineOf('sqlite'), { environment });
  for (const path of ['/tokens', '/tokens/abc', '/sessions', '/nowhere']) {
    const headers = { ...origin, 'access-control-request-method': 'PATCH' };
    const answer = await send('OPTIONS', path, { headers });
    assert.equal(answer.status, 204);
    assert.equal(answer.text, '');
    assert.equal(answer.headers.get('access-control-allow-origin'), '*');
    const allowed = (answer.headers.get('access-control-allow-headers') ?? '').split(', ');
    for (const name of ['Content-Type', 'SVC-API-KEY', 'BT-API-KEY', 'BT-IDEMPOTENCY-KEY']) {
      assert.ok(
        allowed.some((one) => one.toLowerCase() === name.toLowerCase()),
        name,
      );
    }
    assert.match(answer.headers.get('access-control-allow-methods') ?? '', /PATCH/);
    assert.equal(answer.headers.get('access-control-allow-credentials'), null);
  }
});

test('every answer can be read by the page that asked, refusals included', async (t) => {
  const vault = await startVault(t, engineOf('sqlite'));
  const key = await vault.application();
  const body = { type: 'token', data: 1 };
  for (const [status, answer] of [
    [201, await vault.send('POST', '/tokens', { key, body, headers: origin })],
    [401, await vault.send('POST', '/tokens', { body, headers: origin })],
    [404, await vault.send('GET', '/nowhere', { headers: origin })],
    [405, await vault.send('OPTIONS', '/tokens', { headers: origin })],
  ] as const) {
    assert.equal(answer.status, status);
    assert.equal(answer.headers.get('access-control-allow-origin'), '*');
    assert.match(answer.headers.get('access-control-expose-headers') ?? '', /SVC-TRACE-ID/i);
  }
});

/** Where a created resource is: said by the operator or not at all, never by who asks. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readConfig } from '../../src/runtime/config/config.ts';
import { onBothEngines } from '../support/engines.ts';
import { connectTo } from '../support/raw-request.ts';
import { managementKey, startVault } from '../support/vault.ts';

const given = (url: string) => readConfig({ STRONGROOM_PUBLIC_URL: url }).publicUrl;

onBothEngines('Location', (engine) => {
  async function created(t: Parameters<typeof startVault>[0], environment = {}) {
    const vault = await startVault(t, engine, { environment });
    const { socket, answer } = await connectTo(vault.url);
    const body = '{"name":"a","type":"private","permissions":["token:read"]}';
    const lines = [
      'POST /applications HTTP/1.1',
      'Host: elsewhere.example',
      'X-Forwarded-Proto: https',
      `SVC-API-KEY: ${managementKey}`,
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
      'Connection: close',
    ];
    socket.write(`${lines.join('\r\n')}\r\n\r\n${body}`);
    return /^location: (.*)$/im.exec(await answer)?.[1]?.trim();
  }

  test('is a path, whatever host a request names', async (t) => {
    assert.match(String(await created(t)), /^\/applications\/[0-9a-f-]{36}$/);
  });

  test('is a whole URL under the public one', async (t) => {
    const environment = { STRONGROOM_PUBLIC_URL: 'https://vault.example.com/v/' };
    const location = String(await created(t, environment));
    assert.match(location, /^https:\/\/vault\.example\.com\/v\/applications\/[0-9a-f-]{36}$/);
  });
});

test('the public URL is one of HTTP, and has no more than a host and a path', () => {
  assert.equal(given(''), undefined);
  assert.equal(given('http://10.0.0.7:8080'), 'http://10.0.0.7:8080');
  assert.equal(given('https://vault.example.com/'), 'https://vault.example.com');
  const wrong = ['vault.example.com', 'ftp://a.example', 'https://', 'https://u:p@a.example'];
  for (const url of [...wrong, 'https://a.example/?q', 'https://a.example/#f', 'javascript:0']) {
    assert.throws(() => given(url), {
      name: 'ConfigError',
      message: /^STRONGROOM_PUBLIC_URL must/,
    });
  }
});

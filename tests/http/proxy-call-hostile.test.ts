/** Callers and destinations that mean harm: what they send leads nowhere that it should not. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, test } from 'node:test';
import { cookieName } from '../../src/http/console/credential.ts';
import { heldBytesMax } from '../../src/proxies/calls/held-bytes.ts';
import { answer, raw } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { createProxy } from '../support/proxies.ts';
import { proxyOf, startCalled } from '../support/proxy-calls.ts';
import { beginRequest, connectTo } from '../support/raw-request.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';

const { destination, url, environment } = await startCalled({ after });

/** The path as it is, which other clients would change. */
async function sendRaw(tenant: TestTenant, path: string, key: string): Promise<string> {
  const { socket, answer: text } = await connectTo(tenant.vault.url);
  const lines = [`GET ${path} HTTP/1.1`, 'Host: localhost', `SVC-API-KEY: ${tenant.key}`];
  socket.write(`${[...lines, `SVC-PROXY-KEY: ${key}`, 'Connection: close'].join('\r\n')}\r\n\r\n`);
  return text;
}

onBothEngines('Hostile callers of proxies', (engine) => {
  const newTenant = tenantsOf(engine, { environment });

  test('no part of a path that is taken literally, and no value, leads out of the base', async () => {
    const tenant = await newTenant();
    const { key } = await createProxy(tenant, {
      destination_url: `${url}/base`,
      allowed_paths: ['/charges/*'],
      configuration: { UP: '../admin', DOT: '.', NAME: 'a b/c' },
    });
    destination.behave(answer());
    const before = destination.requests.length;
    for (const path of [
      '/charges/{%raw%}..{%endraw%}/{%raw%}..{%endraw%}/admin/{{config:NAME}}',
      '/charges/.{%raw%}.{%endraw%}/admin/{{config:NAME}}',
      '/charges/{%raw%}%2e{%endraw%}./{{config:NAME}}',
    ]) {
      const text = await sendRaw(tenant, `/proxy${path}`, key);
      assert.match(text, /^HTTP\/1\.1 400 /, path);
      assert.match(text, /proxy_error/, path);
    }
    assert.equal(destination.requests.length, before);
    // A value that would lead there is not sent, and its caller does not learn that.
    for (const [path, sent] of [
      ['/charges/{{config:UP}}', '/base/charges/null'],
      ['/charges/{{config:DOT}}{%raw%}.{%endraw%}', '/base/charges/null.'],
    ] as const) {
      assert.match(await sendRaw(tenant, `/proxy${path}`, key), /^HTTP\/1\.1 200 /);
      assert.equal(destination.requests.at(-1)?.url, sent);
    }
    const text = await sendRaw(
      tenant,
      '/proxy/charges/{%raw%}{{x}}{%endraw%}/{{config:NAME}}',
      key,
    );
    assert.match(text, /^HTTP\/1\.1 200 /);
    assert.equal(destination.requests.at(-1)?.url, '/base/charges/{{x}}/a%20b%2Fc');
  });

  test('no destination chooses the framing of a failure of the vault', async () => {
    const tenant = await newTenant();
    const { key } = await createProxy(tenant, { destination_url: url });
    for (const status of ['000', '099']) {
      destination.behave(raw(`HTTP/1.1 ${status} No\r\nContent-Length: 0\r\nX-A: b\r\n\r\n`));
      const text = await sendRaw(tenant, '/proxy', key);
      assert.match(text, /^HTTP\/1\.1 502 /);
      assert.equal(text.match(/content-length/gi)?.length, 1, text);
      assert.doesNotMatch(text, /x-a/i);
    }
  });

  test('503: large texts of one tenant fill no more than its share of the memory', async () => {
    const tenant = await newTenant();
    const { key } = await createProxy(tenant, { destination_url: url, require_auth: false });
    destination.behave(answer());
    const headers = { 'svc-proxy-key': key, 'content-type': 'text/plain' };
    const open = { url: tenant.vault.url, method: 'POST', path: '/proxy', headers };
    const megabyte = 1024 * 1024;
    const chunk = `${(4 * megabyte).toString(16)}\r\n${'x'.repeat(4 * megabyte)}\r\n`;
    // One more than fit, on up to two threads.
    const count = (heldBytesMax.ofPartition / megabyte / 4) * 2 + 1;
    const callers = await Promise.all(Array.from({ length: count }, () => beginRequest(open)));
    const first = Promise.race(callers.map(({ socket }) => once(socket, 'data')));
    for (const { socket } of callers) socket.write(chunk);
    const [refusal] = await first;
    assert.match(String(refusal), /^HTTP\/1\.1 503 [\s\S]*proxy_error[\s\S]*large texts/);
    const call = (body: string) => tenant.vault.send('POST', '/proxy', { headers, body });
    assert.equal((await call('small')).status, 200);
    for (const { socket } of callers) socket.destroy();
    let status: number | undefined;
    for (let tries = 0; tries < 500 && status !== 200; tries += 1) {
      const received = await call('x'.repeat(4 * megabyte)).catch(() => undefined);
      status = received?.status;
    }
    assert.equal(status, 200);
  });

  test('a destination says nothing for the host of the vault, only for that of its proxy', async () => {
    const tenant = await newTenant();
    const host = `p${tenant.id.toLowerCase()}.example.com`;
    const call = await proxyOf(tenant, { destination_url: url, proxy_host: host });
    const ofHost = [
      ...['Strict-Transport-Security', 'max-age=1', 'Clear-Site-Data', '"*"', 'Alt-Svc', 'h3=":1"'],
      ...['Service-Worker-Allowed', '/', 'Cache-Control', 'public, max-age=60', 'Expires', '0'],
      ...['Secure-Session-Registration', '(ES256);path="/x"', 'Set-Login', 'logged-in'],
    ];
    const cookie = ['Set-Cookie', 'a=b'];
    const policy = ['Content-Security-Policy', "default-src 'none'"];
    destination.behave(answer(200, [...ofHost, ...cookie, ...policy], '<script></script>'));
    const below = await call('GET', '');
    for (let at = 0; at < ofHost.length; at += 2) {
      const expected = ofHost[at] === 'Cache-Control' ? 'no-store' : null;
      assert.equal(below.headers.get(ofHost[at] as string), expected);
    }
    assert.equal(below.headers.get('content-security-policy'), "default-src 'none', sandbox");
    assert.equal(below.headers.get('set-cookie'), 'a=b');
    const browser = await call('GET', '', { headers: { 'sec-fetch-site': 'cross-site' } });
    assert.equal(browser.headers.get('set-cookie'), null);
    const own = await tenant.send('GET', '/', { headers: { host, 'sec-fetch-site': 'none' } });
    for (let at = 0; at < ofHost.length; at += 2) {
      assert.equal(own.headers.get(ofHost[at] as string), ofHost[at + 1]);
    }
    assert.equal(own.headers.get('set-cookie'), 'a=b');
    assert.equal(own.headers.get('content-security-policy'), "default-src 'none'");
    const fixed = [...['Set-Cookie', `${cookieName}=fixed; Path=/; Secure`], ...cookie];
    destination.behave(answer(200, fixed));
    assert.equal((await call('GET', '')).headers.get('set-cookie'), 'a=b', 'no session is fixed');
  });

  test('a destination directs no server that is in front of the vault', async () => {
    const tenant = await newTenant();
    const host = `f${tenant.id.toLowerCase()}.example.com`;
    const call = await proxyOf(tenant, { destination_url: url, proxy_host: host });
    const orders = [
      ...['X-Accel-Redirect', '/tokens', 'x-accel-expires', '60', 'X-Sendfile', '/etc/passwd'],
      ...['X-LIGHTTPD-send-file', '/etc/passwd', 'X-LiteSpeed-Location', '/tokens'],
      ...['Link', '</proxy/{{ config: NAME }}>; rel=preload'],
      ...['X-Reproxy-URL', 'http://127.0.0.1/', 'X-Envoy-Immediate-Health-Check-Fail', 'true'],
    ];
    destination.behave(answer(200, [...orders, 'X-Own', 'yes'], 'text'));
    const answers = [await call('GET', ''), await tenant.send('GET', '/', { headers: { host } })];
    for (const { status, headers } of answers) {
      assert.equal(status, 200);
      assert.equal(headers.get('x-own'), 'yes');
      for (let at = 0; at < orders.length; at += 2) {
        assert.equal(headers.get(orders[at] ?? ''), null, `${orders[at]}`);
      }
    }
    const trailer = 'Trailer: X-Accel-Redirect\r\nTransfer-Encoding: chunked';
    const end = '0\r\nX-Accel-Redirect: /tokens\r\nX-Own: yes\r\n\r\n';
    destination.behave(raw(`HTTP/1.1 200 OK\r\n${trailer}\r\n\r\n1\r\na\r\n${end}`));
    const { key } = await createProxy(tenant, { destination_url: url });
    const text = await sendRaw(tenant, '/proxy', key);
    assert.match(text, /\r\nX-Own: yes\r\n/);
    assert.doesNotMatch(text, /^X-Accel-Redirect:/im);
  });

  test('a redirect leads to no expression that its destination wrote', async () => {
    const tenant = await newTenant();
    const { id } = (await tenant.token({ type: 'token', data: 'a secret' })).body;
    const configuration = { KEY: 'a key' };
    const { key } = await createProxy(tenant, { destination_url: url, configuration });
    for (const [open, close] of [
      ['{{', '}}'],
      ['%7b{', '%7D}'],
      // Clients drop tabs in a URL.
      ['{\t{', '}\t}'],
    ]) {
      const asked = [id, 'config: KEY'].map((one) => `${open} ${one} ${close}`);
      for (const name of ['Location', 'Refresh']) {
        destination.behave(({ request, response }) => {
          const headers = [name, `${name === 'Refresh' ? '0;url=' : ''}/proxy/${asked.join('/')}`];
          response.writeHead(request.url === '/' ? 302 : 200, headers).end();
        });
        const sent = destination.requests.length;
        const headers = { 'svc-api-key': tenant.key, 'svc-proxy-key': key };
        // As most clients do, with all of its headers.
        const received = await fetch(`${tenant.vault.url}/proxy/`, { headers });
        const led = destination.requests.slice(sent).map((one) => one.url);
        assert.deepEqual(led, ['/']);
        assert.equal(received.headers.get(name), null);
      }
    }
    destination.behave(answer(302, ['Location', '/proxy/next?page={2}', 'X-Own', '{{ kept }}']));
    const redirect = await tenant.send('GET', '/proxy', { headers: { 'svc-proxy-key': key } });
    assert.equal(redirect.headers.get('location'), '/proxy/next?page={2}');
    assert.equal(redirect.headers.get('x-own'), '{{ kept }}');
  });
});

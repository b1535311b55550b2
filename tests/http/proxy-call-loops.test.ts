/** What leaves the vault names it in CDN-Loop (RFC 8586), and does not come in again. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { answer } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { headerOf, proxyOf, startCalled } from '../support/proxy-calls.ts';
import { beginRequest, connectTo } from '../support/raw-request.ts';
import { createReactor, invoker, takeDue } from '../support/reactors.ts';
import { newTenant } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

const { destination, url, environment } = await startCalled({ after });
destination.behave(answer(200, [], 'from the destination'));

const form = /^strongroom-[0-9a-f]{16}$/;

onBothEngines('Loops', (engine) => {
  test('a request that this vault sent is refused with 508 before its body, on every route', async (t) => {
    const place = await engine.place(t);
    const vault = await startVault(t, engine, { environment, place });
    const tenant = await newTenant(vault);
    const call = await proxyOf(tenant, { destination_url: url, require_auth: false });
    assert.equal((await call('GET', '/')).status, 200);
    const name = headerOf(destination.requests.at(-1)?.headers ?? [], 'cdn-loop') ?? '';
    assert.match(name, form);
    const count = destination.requests.length;
    for (const list of [
      name,
      `other, ${name}`,
      `${name.toUpperCase()};v=1, other`,
      `a,${name} ; b`,
    ]) {
      const refused = await call('GET', '/', { headers: { 'cdn-loop': list } });
      assert.equal(refused.status, 508, refused.text);
      assert.equal(refused.body.type, 'urn:strongroom:problem:loop_detected');
      const plain = await tenant.send('GET', '/tokens', { headers: { 'cdn-loop': list } });
      assert.equal(plain.status, 508);
    }
    const { socket, answer: text } = await connectTo(vault.url);
    socket.write(
      `POST /tokens HTTP/1.1\r\nHost: localhost\r\nCDN-Loop: ${name}\r\nContent-Length: 9\r\nConnection: close\r\n\r\n`,
    );
    assert.match(await text, /^HTTP\/1\.1 508 /);
    assert.equal(destination.requests.length, count);
    // All servers of a vault have one name.
    if (engine.name !== 'postgres') return;
    const sibling = await startVault(t, engine, { environment, place });
    const elsewhere = await sibling.send('GET', '/healthz', { headers: { 'cdn-loop': name } });
    assert.equal(elsewhere.status, 508);
  });

  test('no caller takes away where its request has been', async (t) => {
    const tenant = await newTenant(await startVault(t, engine, { environment }));
    const call = await proxyOf(tenant, { destination_url: url, require_auth: false });
    for (const headers of [
      { 'cdn-loop': 'one.example;v=1, two' },
      { 'cdn-loop': 'one.example;v=1, two', connection: 'cdn-loop' },
    ]) {
      assert.equal((await call('GET', '/', { headers })).status, 200);
      const sent = destination.requests.at(-1)?.headers ?? [];
      const lists = sent.filter((_, at) => sent[at - 1]?.toLowerCase() === 'cdn-loop');
      assert.equal(lists.length, 1);
      assert.match(lists[0] ?? '', /^one\.example;v=1, two, strongroom-[0-9a-f]{16}$/);
    }
  });

  test('code that runs later says where the request has been that asked for it', async (t) => {
    const vault = await startVault(t, engine, { environment });
    const tenant = await newTenant(vault);
    const code =
      'module.exports = async ({ args }) => { await fetch(args.url); return { raw: 1 } }';
    const { id } = await createReactor(tenant, { code });
    const accepted = await tenant.send('POST', `/reactors/${id}/react-async`, {
      key: await invoker(tenant),
      body: { args: { url } },
      headers: { 'cdn-loop': 'strongroom-0123456789abcdef' },
    });
    assert.equal(accepted.status, 202, accepted.text);
    const { reactorRuns } = vault.running.vault;
    await takeDue(reactorRuns);
    await reactorRuns?.settled();
    const list = headerOf(destination.requests.at(-1)?.headers ?? [], 'cdn-loop') ?? '';
    assert.match(list, /^strongroom-0123456789abcdef, strongroom-[0-9a-f]{16}$/);
  });

  test('uploads that do not come hold no slot, and calls without a key none of those with one', async (t) => {
    const vault = await startVault(t, engine, { environment });
    const tenant = await newTenant(vault);
    const open = await proxyOf(tenant, { destination_url: url, require_auth: false });
    const closed = await proxyOf(tenant, { destination_url: url });
    const headers = { 'svc-proxy-key': open.key, 'content-type': 'application/octet-stream' };
    const begin = () =>
      beginRequest({ url: vault.url, method: 'POST', path: '/proxy/slow', headers });
    const connected = () => destination.sockets.filter(({ destroyed }) => !destroyed).length;
    const before = connected();
    // More than a host has slots.
    const silent = await Promise.all(Array.from({ length: 70 }, begin));
    // One that was kept may end meanwhile.
    assert.ok(connected() <= before, `${connected()} connections, ${before} before`);
    // As many as are sent, and then stop: a quarter of the slots, and none of a call with a key.
    for (const { socket } of silent) socket.write('1\r\nx\r\n');
    const key = tenant.key;
    const held = await tenant.application({ permissions: ['proxy:invoke'] });
    assert.equal((await closed('GET', '/', { key: held })).status, 200, key);
    assert.ok(connected() <= before + 17, `${connected()} connections, ${before} before`);
    for (const { socket } of silent) socket.destroy();
  });
});

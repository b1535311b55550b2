/** One line for each request where the operator asks for it: never a path, a query or a body. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { beginRequest } from '../support/raw-request.ts';
import { withoutUuids } from '../support/scan.ts';
import { startVault, type TestVault } from '../support/vault.ts';

const on = { STRONGROOM_ACCESS_LOG: 'on' };

const linesOf = ({ logged }: TestVault) => logged.filter(({ message }) => message === 'request');

async function until(check: () => boolean): Promise<void> {
  while (!check()) await new Promise((resolve) => setImmediate(resolve));
}

onBothEngines('the access log', (engine) => {
  test('has a line for each request, with its route, its caller and its trace', async (t) => {
    const vault = await startVault(t, engine, { environment: on });
    const key = await vault.application();
    await until(() => linesOf(vault).length > 0);
    vault.logged.length = 0;
    const headers = { 'svc-trace-id': 'trace-7' };
    await vault.send('GET', '/tokens/4242424242424242?xyzzy=1', { key, headers });
    await vault.send('GET', '/4242424242424242', { headers });
    await vault.send('POST', '/tokens', { key: 'no key', body: { data: 'xyzzy' }, headers });
    await until(() => linesOf(vault).length === 3);
    const lines = linesOf(vault).map(({ fields }) => fields ?? {});
    const find = (status: number, route: string) =>
      lines.find((line) => line.status === status && line.route === route);
    const read = find(400, '/tokens/:id') ?? find(404, '/tokens/:id');
    assert.equal(read?.method, 'GET');
    assert.equal(read?.trace_id, 'trace-7');
    assert.match(read?.tenant_id ?? '', /^[0-9a-f-]{36}$/);
    assert.match(read?.application_id ?? '', /^[0-9a-f-]{36}$/);
    assert.ok(Number.isInteger(read?.duration_ms));
    const { duration_ms: _, ...nowhere } = find(404, 'none') ?? {};
    assert.deepEqual(nowhere, { method: 'GET', route: 'none', status: 404, trace_id: 'trace-7' });
    assert.equal(find(401, '/tokens')?.tenant_id, undefined);
    assert.doesNotMatch(withoutUuids(JSON.stringify(lines)), /4242|xyzzy|no key/);
  });

  test('has status 499, and so have the metrics, for a client that left before its response', async (t) => {
    const vault = await startVault(t, engine, { environment: on });
    const key = await vault.application();
    vault.logged.length = 0;
    const request = { method: 'POST', path: '/tokens', headers: { 'svc-api-key': key } };
    const { socket } = await beginRequest({ url: vault.url, ...request, length: 100 });
    socket.destroy();
    await until(() => linesOf(vault).some(({ fields }) => fields?.route === '/tokens'));
    const line = linesOf(vault).find(({ fields }) => fields?.route === '/tokens');
    assert.equal(line?.fields?.status, 499);
    const { text } = await vault.send('GET', '/metrics');
    assert.match(
      text,
      /request_duration_seconds_count\{method="POST",route="\/tokens",status="499"\} 1/,
    );
  });

  test('has status 408 for a client that the vault cut off because it was too slow, and not 499', async (t) => {
    const vault = await startVault(t, engine, { environment: on, requestTimeoutMs: 300 });
    const key = await vault.application();
    vault.logged.length = 0;
    const request = { method: 'POST', path: '/tokens', headers: { 'svc-api-key': key } };
    const { answer } = await beginRequest({ url: vault.url, ...request, length: 100 });
    assert.match(await answer, /^HTTP\/1\.1 (?:100|408) /);
    await until(() => linesOf(vault).some(({ fields }) => fields?.route === '/tokens'));
    const line = linesOf(vault).find(({ fields }) => fields?.route === '/tokens');
    assert.equal(line?.fields?.status, 408);
  });

  test('is off unless it is asked for', async (t) => {
    const vault = await startVault(t, engine);
    await vault.send('GET', '/ping');
    await vault.stop();
    assert.deepEqual(linesOf(vault), []);
  });
});

/** GET /openapi.json, /docs and /metrics. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { routesOf, startVault } from '../support/vault.ts';

onBothEngines('the description of the service', (engine) => {
  test('200: every declared route is in the OpenAPI document and on the page', async (t) => {
    const vault = await startVault(t, engine);
    const { status, body } = await vault.send('GET', '/openapi.json');
    const page = await vault.send('GET', '/docs');
    assert.equal(status, 200);
    assert.match(page.headers.get('content-type') ?? '', /^text\/html/);
    const routes = await routesOf(vault);
    assert.ok(routes.length > 0);
    for (const { method, path } of routes) {
      const template = path.replace(/:(\w+)/g, '{$1}');
      assert.ok(body.paths[template]?.[method.toLowerCase()], `${method} ${template}`);
      assert.ok(page.text.includes(`<code>${template}</code>`), template);
    }
    assert.equal(body.components.securitySchemes.key.name, 'SVC-API-KEY');
  });

  test('200: metrics count requests by pattern and never hold an id or a key', async (t) => {
    const vault = await startVault(t, engine);
    const key = await vault.application();
    const id = 'an-id-that-is-not-to-be-seen';
    await vault.send('POST', '/tokens', { key, body: { id, type: 'token', data: 'x' } });
    await vault.send('GET', `/tokens/${id}`, { key });
    const { status, text } = await vault.send('GET', '/metrics');
    assert.equal(status, 200);
    assert.match(
      text,
      /strongroom_request_duration_seconds_count\{method="GET",route="\/tokens\/:id",status="200"\} 1/,
    );
    assert.ok(!text.includes(id));
    assert.ok(!text.includes(key));
  });
});

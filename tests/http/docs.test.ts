/** GET /docs and /metrics. That the description is true: description.test.ts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { metricsMadeMax, metricsWindowMs } from '../../src/api/service.ts';
import { tokenTypeNames } from '../../src/api/token-shapes.ts';
import { errorKinds } from '../../src/base/errors.ts';
import { filters } from '../../src/expressions/filters/filters.ts';
import { boundedFilters } from '../../src/expressions/filters/standard-filters.ts';
import { permissions } from '../../src/rules/permissions.ts';
import { quotaRows, settingRows } from '../../src/rules/settings.ts';
import { onBothEngines } from '../support/engines.ts';
import { routesOf, startVault, threads } from '../support/vault.ts';

onBothEngines('the reference', (engine) => {
  test('200: the document has every route, type, filter, permission, quota, setting and problem', async (t) => {
    const vault = await startVault(t, engine);
    const { body } = await vault.send('GET', '/openapi.json');
    const routes = await routesOf(vault);
    assert.ok(routes.length > 0);
    for (const { method, path } of routes) {
      const template = path.replace(/:(\w+)/g, '{$1}');
      const described = body.paths[template]?.[method.toLowerCase()];
      assert.ok(described, `${method} ${template}`);
    }
    assert.equal(body.components.securitySchemes.key.name, 'SVC-API-KEY');
    const facts = body['x-reference'];
    const namesOf = (rows: { name: string }[]) => rows.map(({ name }) => name);
    assert.deepEqual(Object.keys(facts.problems), Object.keys(errorKinds));
    assert.deepEqual(namesOf(facts.tokenTypes), tokenTypeNames);
    assert.deepEqual(namesOf(facts.permissions), Object.keys(permissions));
    assert.deepEqual(namesOf(facts.quotas), Object.keys(quotaRows));
    assert.deepEqual(namesOf(facts.settings), Object.keys(settingRows));
    assert.deepEqual(
      namesOf(facts.filters).sort(),
      [...filters.keys(), ...boundedFilters.keys()].sort(),
    );
    for (const { name, meaning } of facts.filters) assert.match(meaning, /^[A-Z].*\.$/, name);
    for (const [code, { cause, cure }] of Object.entries<{ cause: string; cure: string }>(
      facts.problems,
    )) {
      for (const text of [cause, cure]) assert.match(text, /^[A-Z`[].*\.$/, code);
    }
  });

  test('200: the page runs its own script alone, loads nothing from elsewhere, and has no inline code', async (t) => {
    const vault = await startVault(t, engine);
    const { status, text, headers } = await vault.send('GET', '/docs');
    assert.equal(status, 200, text);
    assert.match(headers.get('content-type') ?? '', /^text\/html/);
    assert.doesNotMatch(text, /<script>|<style|\son\w+=|\sstyle=|\/\/|undefined|\[object/i);
    const policy = headers.get('content-security-policy') ?? '';
    assert.doesNotMatch(policy, /unsafe|\*|http/);
    const [, integrity = ''] = /<script [^>]*integrity="([^"]+)"/.exec(text) ?? [];
    assert.ok(policy.includes(`script-src '${integrity}';`), policy);
    assert.ok(policy.includes("default-src 'none';") && policy.includes("connect-src 'self';"));
    for (const [, path = ''] of text.matchAll(/(?:href|src)="(\/[^"]+)"/g)) {
      assert.equal((await vault.send('GET', path)).status, 200, path);
    }
  });
});

onBothEngines('What describes the service', (engine) => {
  test('304: the document and the page are the same bytes each time, by their ETag', async (t) => {
    const vault = await startVault(t, engine);
    for (const path of ['/openapi.json', '/docs']) {
      const first = await vault.send('GET', path);
      const etag = first.headers.get('etag') ?? '';
      assert.match(etag, /^"[\w-]{43}"$/);
      assert.equal(first.headers.get('cache-control'), 'no-cache');
      for (const named of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
        const known = await vault.send('GET', path, { headers: { 'if-none-match': named } });
        assert.deepEqual([known.status, known.text], [304, '']);
        assert.equal(known.headers.get('etag'), etag);
      }
      const other = await vault.send('GET', path, { headers: { 'if-none-match': '"other"' } });
      assert.equal(other.status, 200);
      assert.equal(other.text, first.text);
      assert.equal((await vault.send('HEAD', path)).headers.get('etag'), etag);
    }
  });

  test('429: one address that reads it more than 200 times in 10 s; probes and others go on', async (t) => {
    const environment = { STRONGROOM_RATE_LIMITS: '', STRONGROOM_TRUSTED_PROXIES: '127.0.0.1' };
    const vault = await startVault(t, engine, { environment });
    const from = (address: string) => ({ headers: { 'x-forwarded-for': address } });
    const paths = ['/openapi.json', '/docs', '/metrics'];
    const answers = await Promise.all(
      // On several threads each counts for itself.
      Array.from({ length: 1_000 }, (_, at) =>
        vault.send('GET', paths[at % 3] as string, from('192.0.2.1')),
      ),
    );
    const refused = answers.filter(({ status }) => status === 429);
    assert.ok(refused.length >= 200, `${refused.length}`);
    assert.ok(Number(refused[0]?.headers.get('retry-after')) >= 1);
    assert.ok(answers.every(({ status }) => status === 200 || status === 429));
    assert.equal((await vault.send('GET', '/openapi.json', from('192.0.2.2'))).status, 200);
    assert.equal((await vault.send('GET', '/ping', from('192.0.2.1'))).status, 200);
  });

  test('metrics that are asked for often are made 200 times in 10 seconds, and then once a second', async (t) => {
    const vault = await startVault(t, engine);
    let made = 0;
    const { metrics } = vault.running.vault;
    const { expose } = metrics;
    t.mock.method(metrics, 'expose', () => {
      made += 1;
      return expose();
    });
    const began = performance.now();
    const answers = await Promise.all(
      Array.from({ length: 900 }, () => vault.send('GET', '/metrics')),
    );
    const seconds = Math.ceil((performance.now() - began) / 1000) + 1;
    assert.ok(answers.every(({ status, text }) => status === 200 && text.length > 0));
    const madeMax = metricsMadeMax * Math.ceil((seconds * 1000) / metricsWindowMs) + seconds;
    assert.ok(made <= Number(threads) * madeMax, `${made} in ${seconds} s`);
  });
});

onBothEngines('the metrics', (engine) => {
  test('200: they count requests by pattern and never hold an id or a key', async (t) => {
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

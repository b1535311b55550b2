/** GET /docs and /metrics. That the description is true: description.test.ts. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { filters } from '../../src/expressions/filters/filters.ts';
import { boundedFilters } from '../../src/expressions/filters/standard-filters.ts';
import { tokenTypeNames } from '../../src/http/description/token-requests.ts';
import { errorKinds } from '../../src/lib/errors.ts';
import { permissions } from '../../src/rules/permissions.ts';
import { quotaRows, settingRows } from '../../src/rules/settings.ts';
import { onBothEngines } from '../support/engines.ts';
import { routesOf, startVault } from '../support/vault.ts';

onBothEngines('the reference', (engine) => {
  test('200: it has every route, type, filter, permission, quota, setting and problem', async (t) => {
    const vault = await startVault(t, engine);
    const page = await vault.send('GET', '/docs');
    assert.equal(page.status, 200, page.text);
    assert.match(page.headers.get('content-type') ?? '', /^text\/html/);
    const { body } = await vault.send('GET', '/openapi.json');
    const routes = await routesOf(vault);
    assert.ok(routes.length > 0);
    for (const { method, path } of routes) {
      const template = path.replace(/:(\w+)/g, '{$1}');
      const described = body.paths[template]?.[method.toLowerCase()];
      assert.ok(described, `${method} ${template}`);
      assert.ok(page.text.includes(`<h3 id="${described.operationId}">`), described.operationId);
      assert.ok(page.text.includes(`<code>${template}</code>`), template);
    }
    assert.equal(body.components.securitySchemes.key.name, 'SVC-API-KEY');
    const anchors = [
      ...tokenTypeNames.map((name) => `type-${name}`),
      ...[...filters.keys()].map((name) => `filter-${name}`),
      ...Object.keys(errorKinds).map((name) => `problem-${name}`),
      ...Object.keys(body.components.schemas).map((name) => `schema-${name}`),
    ];
    for (const anchor of anchors) assert.ok(page.text.includes(`id="${anchor}"`), anchor);
    const words = [permissions, quotaRows, settingRows].flatMap((rows) => Object.keys(rows));
    for (const word of [...words, ...boundedFilters.keys()]) {
      assert.ok(page.text.includes(`<code>${word}</code>`), word);
    }
  });

  test('200: each filter has one sentence that says what it does, before its vectors', async (t) => {
    const vault = await startVault(t, engine);
    const { text } = await vault.send('GET', '/docs');
    for (const name of [...filters.keys(), ...boundedFilters.keys()]) {
      const [, section = ''] = text.split(new RegExp(`id="filter-${name}"`));
      assert.match(section, /^.*?<\/h[34]>\s*<p>[A-Z][^.]*[^<]*\.<\/p>/, name);
    }
  });

  test('200: every link leads somewhere on the page, and every anchor is there once', async (t) => {
    const vault = await startVault(t, engine);
    const { text } = await vault.send('GET', '/docs');
    const ids = [...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);
    assert.equal(new Set(ids).size, ids.length);
    const targets = [...text.matchAll(/ href="#([^"]+)"/g)].map(([, id]) => id);
    assert.deepEqual(
      targets.filter((id) => !ids.includes(id)),
      [],
    );
  });

  test('200: no script, nothing from elsewhere, and no other style than its own may run', async (t) => {
    const vault = await startVault(t, engine);
    const { text, headers } = await vault.send('GET', '/docs');
    assert.doesNotMatch(
      text,
      /<script|<link|<img|<iframe|\son\w+=|\sstyle=|\ssrc=|undefined|\[object/i,
    );
    const [, style = ''] = /<style>(.*?)<\/style>/s.exec(text) ?? [];
    const digest = createHash('sha256').update(style).digest('base64');
    assert.equal(
      headers.get('content-security-policy'),
      `default-src 'none'; style-src 'sha256-${digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    );
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

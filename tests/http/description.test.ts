/** GET /openapi.json: what it describes is so. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { operationsOf } from '../../src/http/description/operation.ts';
import { sections } from '../../src/http/description/operations/sections.ts';
import recorded from '../../src/http/description/response-examples.json' with { type: 'json' };
import { tokenTypeNames } from '../../src/http/description/token-requests.ts';
import { tokenData } from '../../src/http/schemas/token-data.ts';
import { type TokenType, tokenTypes } from '../../src/values/token-types.ts';
import { onBothEngines } from '../support/engines.ts';
import { runExamples } from '../support/example-story.ts';
import { responseExamples } from '../support/response-examples.ts';
import { root } from '../support/source.ts';
import { tenantsOf } from '../support/tenant.ts';
import { routesOf } from '../support/vault.ts';

interface Described {
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, DescribedSchema>> };
}

interface DescribedOperation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly parameters?: readonly { readonly description?: string; readonly $ref?: string }[];
  readonly responses: Readonly<Record<string, unknown>>;
}

interface DescribedSchema {
  readonly properties?: Readonly<Record<string, { readonly description?: string }>>;
}

onBothEngines('the description', (engine) => {
  const tenants = tenantsOf(engine);

  test('every example works as it is written, in the order of the reference', async () => {
    const tenant = await tenants();
    const operations = operationsOf(await routesOf(tenant.vault));
    const story = await runExamples(tenant, operations);
    assert.equal(story.steps.length, operations.length);
    for (const { operation, received } of story.steps) {
      const described = [operation.route.reply.status, ...operation.problems.keys()];
      assert.ok(described.includes(received.status), operation.id);
    }
    // And is answered as the description shows; `npm run openapi` records the responses.
    assert.deepEqual(responseExamples(story), recorded);
  });

  test('docs/openapi.json is what the vault serves; `npm run openapi` writes it', async () => {
    const tenant = await tenants();
    const { body } = await tenant.vault.send('GET', '/openapi.json');
    const committed = readFileSync(join(root, 'docs', 'openapi.json'), 'utf8');
    assert.deepEqual(JSON.parse(committed), body);
  });

  test('every success with a body has an example of it', async () => {
    const tenant = await tenants();
    for (const { id, route, row } of operationsOf(await routesOf(tenant.vault))) {
      const isRefused = row?.example.status !== undefined;
      assert.equal(id in recorded, route.reply.body !== undefined && !isRefused, id);
    }
  });

  test('every operation has a name of its own, a section and its statuses; every attribute a meaning', async () => {
    const tenant = await tenants();
    const document = (await tenant.vault.send('GET', '/openapi.json')).body as Described;
    const operations = Object.values(document.paths).flatMap((path) => Object.values(path));
    const ids = operations.map(({ operationId }) => operationId);
    assert.deepEqual(
      ids.filter((id, at) => !/^[a-z][A-Za-z]+$/.test(id) || ids.indexOf(id) !== at),
      [],
    );
    for (const { operationId, tags, parameters = [], responses } of operations) {
      assert.notEqual(tags[0], 'Other', operationId);
      assert.ok(
        parameters.every(({ description, $ref }) => $ref ?? description),
        operationId,
      );
      assert.ok(
        Object.keys(responses).some((status) => status.startsWith('4')),
        operationId,
      );
    }
    const silent = Object.entries(document.components.schemas).flatMap(([name, { properties }]) =>
      Object.entries(properties ?? {})
        .filter(([, { description }]) => !description)
        .map(([attribute]) => `${name}.${attribute}`),
    );
    assert.deepEqual(silent, []);
  });

  test('every described operation is a route', async () => {
    const tenant = await tenants();
    const routes = (await routesOf(tenant.vault)).map(({ method, path }) => `${method} ${path}`);
    const described = sections.flatMap(({ operations }) => Object.keys(operations));
    assert.deepEqual(
      described.filter((name) => !routes.includes(name)),
      [],
    );
  });
});

test('the described data of a type has the properties that the type has', () => {
  for (const type of tokenTypeNames) {
    const { properties } = tokenData[type] as { readonly properties?: object };
    const row: TokenType = tokenTypes[type];
    assert.deepEqual(properties && Object.keys(properties), row.properties, type);
  }
});

/** GET /openapi.json: what it describes is so. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { publishedIn } from '../../src/api/openapi/published-operation.ts';
import recorded from '../../src/api/openapi/response-examples.json' with { type: 'json' };
import { tokenData, tokenTypeNames } from '../../src/api/token-shapes.ts';
import { type TokenType, tokenTypes } from '../../src/tokens/contents/token-types.ts';
import { onBothEngines } from '../support/engines.ts';
import { runExamples } from '../support/example-story.ts';
import { responseExamples } from '../support/response-examples.ts';
import { root } from '../support/source.ts';
import { tenantsOf } from '../support/tenant.ts';
import { sectionsOf } from '../support/vault.ts';

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
    const operations = publishedIn(await sectionsOf(tenant.vault));
    const story = await runExamples(tenant, operations);
    assert.equal(story.steps.length, operations.length);
    for (const { operation, published, received } of story.steps) {
      const described = [operation.reply.status, ...published.problems.keys()];
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
    for (const { operations } of await sectionsOf(tenant.vault)) {
      for (const { id, reply, example } of operations) {
        assert.equal(id in recorded, reply.body !== undefined && example.status === undefined, id);
      }
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
      assert.equal(tags.length, 1, operationId);
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
});

test('the described data of a type has the properties that the type has', () => {
  for (const type of tokenTypeNames) {
    const { properties } = tokenData[type] as { readonly properties?: object };
    const row: TokenType = tokenTypes[type];
    assert.deepEqual(properties && Object.keys(properties), row.properties, type);
  }
});

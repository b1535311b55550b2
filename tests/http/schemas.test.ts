/** Schemas are compiled with the first request that needs them, so here all of them are. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compileValidator } from '../../src/http/protocol/validation.ts';
import { onBothEngines } from '../support/engines.ts';
import { routesOf, startVault } from '../support/vault.ts';

onBothEngines('the schemas of the routes', (engine) => {
  test('every one compiles', async (t) => {
    const routes = await routesOf(await startVault(t, engine));
    const schemas = routes.flatMap(({ method, path, params, query, body }) =>
      Object.entries({ params, query, body }).map(([part, schema]) => ({
        name: `${part} of ${method} ${path}`,
        schema,
      })),
    );
    const declared = schemas.filter(({ schema }) => schema !== undefined);
    assert.ok(declared.length > 0);
    for (const { name, schema = {} } of declared) {
      assert.doesNotThrow(() => compileValidator(schema, 'body')({}), name);
    }
  });
});

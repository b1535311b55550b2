/** docs/reactors.md: its code is accepted as it is written. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { createReactor } from '../support/reactors.ts';
import { root } from '../support/source.ts';
import { tenantsOf } from '../support/tenant.ts';

onBothEngines('the examples of docs/reactors.md', (engine) => {
  const newTenant = tenantsOf(engine);

  test('are code that a vault stores', async () => {
    const tenant = await newTenant();
    const text = readFileSync(join(root, 'docs', 'reactors.md'), 'utf8');
    const examples = Array.from(text.matchAll(/```js\n([\s\S]*?)```/g), ([, code = '']) => code);
    assert.equal(examples.length, 4);
    for (const code of examples) await createReactor(tenant, { code });
  });
});

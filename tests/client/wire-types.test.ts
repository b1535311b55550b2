/** The types of the client are those of the wire: each response of a running vault is of its declared type. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { operations } from '../../packages/client/src/wire.ts';
import { clientTypes } from '../../scripts/client-types.ts';
import { publishedIn } from '../../src/api/openapi/published-operation.ts';
import { onBothEngines } from '../support/engines.ts';
import { runExamples } from '../support/example-story.ts';
import { formatted, typeErrors } from '../support/packages.ts';
import { root } from '../support/source.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { newTenant } from '../support/tenant.ts';
import { sectionsOf, startVault } from '../support/vault.ts';

const wire = join(root, 'packages', 'client', 'src', 'wire.ts');

test('the types are those of the present description; otherwise run npm run client:types', () => {
  const description = JSON.parse(readFileSync(join(root, 'docs', 'openapi.json'), 'utf8'));
  assert.equal(readFileSync(wire, 'utf8'), formatted(clientTypes(description)));
});

onBothEngines('the types of the client', (engine) => {
  test('each request and response of the examples is of its type, and not with one attribute more', async (t) => {
    const vault = await startVault(t, engine);
    const published = publishedIn(await sectionsOf(vault));
    const { steps } = await runExamples(await newTenant(vault), published);
    const lines = [`import type { Operations } from ${JSON.stringify(wire)};`];
    const wrong: number[] = [];
    const covered = new Set<string>();
    const declare = (id: string, part: string, value: unknown) => {
      const declared = `export const a${lines.length}: Operations['${id}']['${part}']`;
      lines.push(`${declared} = ${JSON.stringify(value)};`);
    };
    for (const { operation, received, answered } of steps) {
      const { id, example, reply } = operation;
      if (!(id in operations) || received.status !== reply.status) continue;
      covered.add(id);
      const isStream = /ndjson/.test(received.headers.get('content-type') ?? '');
      for (const one of isStream ? [answered].flat() : [answered]) {
        if (one === undefined) continue;
        declare(id, 'reply', one);
        if (isPlain(one)) {
          declare(id, 'reply', { ...one, not_on_the_wire: true });
          if (hasShape(id)) wrong.push(lines.length);
        }
      }
      const bodies = isStream ? [example.body ?? []].flat() : [example.body];
      for (const one of bodies) if (one !== undefined) declare(id, 'body', one);
    }
    const file = join(temporaryDirectory(t), 'responses.ts');
    writeFileSync(file, lines.join('\n'));
    const errors = typeErrors([file]);
    assert.deepEqual(
      errors.map(({ line }) => line),
      wrong,
      JSON.stringify(errors.filter(({ line }) => !wrong.includes(line)).slice(0, 3)),
    );
    assert.ok(wrong.length > 50);
    // Their examples show a refusal, or no key of the service is asked for.
    const unseen = [
      'deleteSignInMethod',
      'getApproval',
      'approveRequest',
      'denyRequest',
      'destroyTenantKey',
      'endConsoleSession',
      'getReactorResult',
      'getWebhookKey',
      'getWebhookKeyVersion',
    ];
    assert.deepEqual(
      Object.keys(operations).filter((id) => !covered.has(id)),
      Object.keys(operations).filter((id) => unseen.includes(id)),
    );
  });
});

/** Of these the caller decides the form. */
function hasShape(id: string): boolean {
  return id !== 'tokenize' && id !== 'detokenize';
}

function isPlain(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

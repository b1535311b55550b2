/** What ends an import between the decision and the commit of a part, and while its client waits for answers. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAuthentication } from '../../src/access/authenticate.ts';
import { createOpenEncrypted } from '../../src/access/client-keys/open-encrypted.ts';
import { tokenReaders } from '../../src/api/token-shapes.ts';
import { serializeLine } from '../../src/api/tokens.ts';
import { importStream } from '../../src/http/bulk/import-stream.ts';
import type { StreamPart } from '../../src/http/protocol/route.ts';
import type { Store } from '../../src/store/store.ts';
import { onBothEngines } from '../support/engines.ts';
import { linesSent } from '../support/lines.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';

const origin = { address: '127.0.0.1', traceId: 'trace', dialect: 'SVC' };

const rule = { description: 'all', priority: 1, container: '/', transform: 'reveal' };

/** A line that is decided by a look at what is stored. */
const line = (data: string) => ({
  type: 'token',
  data,
  fingerprint_expression: '{{ data }}',
  deduplicate_token: true,
});

interface Import {
  /** Runs once, while the first part is being decided in its turn. */
  readonly meanwhile: (application: { readonly id: string; readonly name: string }) => unknown;
  readonly body: AsyncIterable<Buffer>;
}

onBothEngines('an import whose turn has come', (engine) => {
  const tenants = tenantsOf(engine);

  async function begin(tenant: TestTenant, { meanwhile, body }: Import) {
    const rules = [{ ...rule, permissions: ['token:create'] }];
    const { body: application } = await tenant.send('POST', '/applications', {
      key: tenant.managementKey,
      body: { name: 'brief', type: 'private', rules },
    });
    const { key } = application;
    const { store, tenants: known, random } = tenant.vault.running.vault;
    const { clock } = tenant.vault;
    const onFailure = async () => undefined;
    const authenticate = createAuthentication({ store, tenants: known, clock, onFailure });
    let isDone = false;
    const select: Store['select'] = async (...given) => {
      if (!isDone) {
        isDone = true;
        await meanwhile(application);
      }
      return store.select(...given);
    };
    const openEncrypted = createOpenEncrypted({ store, clock });
    const tools = {
      store: { ...store, select },
      tenants: known,
      clock,
      random,
      openEncrypted,
      onMaskFailure: () => undefined,
      ...tokenReaders,
      serializeLine,
    };
    return importStream(tools, {
      caller: async () => authenticate(key, origin),
      key,
      rowsOfPart: (rows: number) => rows,
      count: async (granted) => ({ granted, refusal: undefined }),
      query: {},
      body,
    });
  }

  /** The client sends no more before it is answered. */
  async function* waiting(lines: readonly object[]): AsyncGenerator<Buffer> {
    for (const one of lines) yield Buffer.from(String(linesSent([one]).body));
    await new Promise(() => undefined);
  }

  async function* ended(lines: readonly object[]): AsyncGenerator<Buffer> {
    yield Buffer.from(String(linesSent(lines).body));
  }

  async function responsesOf(parts: AsyncIterable<StreamPart>): Promise<readonly unknown[]> {
    const answers: unknown[] = [];
    for await (const part of parts) answers.push(...(part as readonly object[]));
    return answers;
  }

  const application = (tenant: TestTenant, method: string, id: string, body?: object) =>
    tenant.send(method, `/applications/${id}`, {
      key: tenant.managementKey,
      ...(body && { body }),
    });

  test('stores nothing once its key was revoked while it was being decided', async () => {
    const tenant = await tenants();
    const meanwhile: Import['meanwhile'] = async ({ id }) =>
      assert.equal((await application(tenant, 'DELETE', id)).status, 204);
    const parts = await begin(tenant, { meanwhile, body: ended([line('one'), line('two')]) });
    await assert.rejects(responsesOf(parts), { code: 'unauthenticated' });
    assert.equal((await tenant.counts())['tokens'], 0);
  });

  test('refuses each line with a conflict once its rights have changed while it was being decided', async () => {
    const tenant = await tenants();
    const meanwhile: Import['meanwhile'] = async ({ id, name }) => {
      const rules = [{ ...rule, container: '/other/', permissions: ['token:create'] }];
      assert.equal((await application(tenant, 'PUT', id, { name, rules })).status, 200);
    };
    const parts = await begin(tenant, { meanwhile, body: ended([line('one'), line('two')]) });
    const answers = (await responsesOf(parts)) as { line: number; status: number }[];
    assert.deepEqual(
      answers.map(({ line, status }) => [line, status]),
      [
        [1, 409],
        [2, 409],
      ],
    );
    assert.equal((await tenant.counts())['tokens'], 0);
  });

  test('fails while its client waits for answers before it sends more', async () => {
    const tenant = await tenants();
    const meanwhile = () => Promise.reject(new Error('a mistake of ours'));
    const parts = await begin(tenant, { meanwhile, body: waiting([line('one')]) });
    await assert.rejects(responsesOf(parts), /a mistake of ours/);
    assert.equal((await tenant.counts())['tokens'], 0);
  });
});

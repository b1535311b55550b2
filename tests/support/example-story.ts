/** Sends the examples of the description in their order, as one story about a tenant. */
import assert from 'node:assert/strict';
import type { Operation } from '../../src/api/declaration/operation.ts';
import type { PublishedOperation } from '../../src/api/openapi/published-operation.ts';
import { tokenData, tokenTypeNames } from '../../src/api/token-shapes.ts';
import type { TestTenant } from './tenant.ts';
import { type Received, revealEverything } from './vault.ts';

/** What the vault makes up itself: what stands for it in an example becomes what it really was. */
const madeUp = /^(?:.f3a1c2e-8b4d-|key_test_|sr_|Nonce0|whsec_|20\d\d-|-----BEGIN)/;

const betweenMs = 10;

export interface Step {
  readonly operation: Operation;
  readonly published: PublishedOperation;
  readonly received: Received;
  /** Its body; of a stream, its lines. */
  readonly answered: unknown;
}

export interface Story {
  readonly steps: readonly Step[];
  /** What the vault made up, by what stands for it in the examples. */
  readonly real: ReadonlyMap<string, string>;
}

/** What is done after a step, while what it was about is there. */
export type EachStep = (
  step: Step,
  given: { readonly key: string; readonly real: Story['real'] },
) => Promise<void>;

/** @throws AssertionError for an example that the vault does not answer as it says. */
export async function runExamples(
  tenant: TestTenant,
  operations: readonly PublishedOperation[],
  eachStep: EachStep = async () => undefined,
): Promise<Story> {
  const keys = await keysOf(tenant);
  await storeExamples(tenant);
  const real = new Map<string, string>();
  const steps: Step[] = [];
  for (const published of operations) {
    const { operation, path, isStream, kinds } = published;
    const { method, mediaType = 'application/json', example } = operation;
    const { params = {}, query, body, reply, status = operation.reply.status } = example;
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
      const value = params[name];
      assert.ok(value !== undefined, `${method} ${path}: ${name}`);
      return encodeURIComponent(substitute(value, real));
    });
    const search = new URLSearchParams(JSON.parse(substitute(JSON.stringify(query ?? {}), real)));
    const kind = (['private', 'public', 'management'] as const).find((one) => kinds.includes(one));
    const key = keys[kind ?? 'private'];
    const sent = substitute(isStream ? linesOf(body) : JSON.stringify(body ?? null), real);
    const received = await tenant.vault.send(method, `${filled}?${search}`, {
      key,
      ...(body !== undefined && { body: sent }),
      headers: body === undefined ? {} : { 'content-type': mediaType },
    });
    assert.equal(received.status, status, `${method} ${path}: ${received.text}`);
    const answered = isStream
      ? received.text
          .trimEnd()
          .split('\n')
          .map((line) => JSON.parse(line))
      : received.body;
    if (reply !== undefined) assertShows(answered, reply, real, `${method} ${path}`);
    const step = { operation, published, received, answered };
    steps.push(step);
    await eachStep(step, { key, real });
    // Lists are sorted by time, so that no two things are of one moment.
    tenant.vault.clock.advance(betweenMs);
  }
  return { steps, real };
}

/** The examples of the types of tokens, which others refer to. */
async function storeExamples(tenant: TestTenant): Promise<void> {
  for (const type of tokenTypeNames) {
    const { examples: [data] = [] } = tokenData[type] as { readonly examples?: readonly unknown[] };
    assert.ok(data !== undefined, type);
    const id = `example-${type}`;
    // Elsewhere than lists that the story shows.
    const { body } = await tenant.token({ id, type, data, containers: ['/examples/'] });
    const read = await tenant.send('GET', `/tokens/${body.id}`);
    assert.deepEqual(read.body.data, data, type);
  }
}

const examplePolicy = {
  host: 'api.example.com',
  containers: ['/examples/'],
  places: ['json:card.number'],
};

async function keysOf(tenant: TestTenant) {
  const intents = ['create', 'read', 'delete'].map((verb) => `token-intent:${verb}`);
  const held = { rules: [revealEverything], permissions: intents };
  return {
    private: await tenant.application({ type: 'private', ...held, egress: [examplePolicy] }),
    public: await tenant.application({ type: 'public', permissions: ['token:create'] }),
    management: tenant.managementKey,
  };
}

function linesOf(body: unknown): string {
  return [body]
    .flat()
    .map((line) => `${JSON.stringify(line)}\n`)
    .join('');
}

export function substitute(text: string, real: ReadonlyMap<string, string>): string {
  return [...real].reduce((all, [from, to]) => all.replaceAll(from, to), text);
}

/** Everything that the example shows is there; what the vault makes up may differ, and is remembered. */
function assertShows(
  actual: unknown,
  example: unknown,
  real: Map<string, string>,
  place: string,
): void {
  if (typeof example === 'string' && madeUp.test(example)) {
    assert.equal(typeof actual, 'string', place);
    real.set(example, real.get(example) ?? String(actual));
    return;
  }
  if (typeof example !== 'object' || example === null) {
    assert.deepEqual(actual, example, place);
    return;
  }
  assert.ok(typeof actual === 'object' && actual !== null, place);
  assert.equal(Array.isArray(actual), Array.isArray(example), place);
  if (Array.isArray(example)) assert.equal((actual as unknown[]).length, example.length, place);
  for (const [name, value] of Object.entries(example)) {
    const member = (actual as Readonly<Record<string, unknown>>)[name];
    assertShows(member, value, real, `${place} ${name}`);
  }
}

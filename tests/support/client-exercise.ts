/** What the client must do in every runtime: a program without imports of Node, which tests run in several. */
import {
  type CardData,
  NotFoundError,
  Strongroom,
  StrongroomError,
  ValidationError,
  verifyWebhook,
} from '../../packages/client/src/client.ts';
import { verifyErasureReceipt, verifyLog } from '../../packages/client/src/verify.ts';

/** All of it is JSON, so that it can be given to another process. */
export interface ExerciseInput {
  readonly url: string;
  readonly privateKey: string;
  readonly publicKey: string;
  readonly managementKey: string;
  readonly number: string;
  readonly proxyKey: string;
  readonly webhook: {
    readonly body: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly secret: string;
    readonly publicKey: string;
  };
  readonly log: string;
}

/** @returns what was seen, for a test to compare. */
export async function exercise(input: ExerciseInput): Promise<object> {
  const { url, number, webhook } = input;
  const vault = new Strongroom({ url, apiKey: input.privateKey });
  const site = new Strongroom({ url, apiKey: input.publicKey });
  const admin = new Strongroom({ url, apiKey: input.managementKey });
  const id = `card-${Math.random()}`;
  const data = { number, expiration_month: 12, expiration_year: 2030 };
  await vault.tokens.create({ id, type: 'card', data });
  const token = await vault.tokens.get<CardData>(id);
  // biome-ignore lint/suspicious/noConsole: the tests look at what a runtime shows
  console.log(token);
  await vault.tokens.update(id, { metadata: { order: '4711' } });
  const found = await vault.tokens.search('metadata.order:4711').toArray();
  const detokenized = await vault.detokenize<{ n: string }>({
    n: `{{ ${id} | json: '$.number' }}`,
  });
  const requests = Array.from({ length: 30 }, (_, at) => ({ type: 'token', data: at }) as const);
  const lines: number[] = [];
  for await (const { line } of vault.tokens.import(requests, { requestsAtOnce: 7 })) {
    lines.push(line);
  }
  let exported = 0;
  for await (const one of vault.tokens.export()) if (one.id) exported += 1;
  const { session_key, nonce } = await site.sessions.create();
  await vault.sessions.authorize({ nonce, permissions: ['token:create'] });
  const page = new Strongroom({ url, apiKey: session_key });
  await page.tokens.create({ type: 'token', data: 'from a page' });
  const charged = await vault.proxy.fetch('/charges', {
    proxy: input.proxyKey,
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ number: `{{ ${id} | json: '$.number' }}` }),
  });
  const charge = (await charged.json()) as { readonly paid: boolean };
  await vault.tokens.delete(id);
  const receipt = await vault.tokens.erasure(id);
  const { public_keys: publicKeys } = await admin.logs.checkpoint();
  const { intact } = await verifyLog(input.log, { publicKeys });
  const events = await Promise.all([
    verifyWebhook({ ...webhook, publicKey: undefined }),
    verifyWebhook({ ...webhook, secret: undefined }),
  ]);
  return {
    isSame: token.data?.number === number && detokenized.n === number,
    found: found.length === 1,
    lines: lines.length,
    charged: [charged.status, charge.paid],
    exported: exported >= 31,
    erased: (await verifyErasureReceipt(receipt, { publicKeys })).id === id,
    intact,
    events: events.map(({ event }) => event.type),
    gone: await failureOf(() => vault.tokens.get(id)),
    invalid: await failureOf(() => vault.tokens.create({ type: 'card', data: { number: '4242' } })),
    unreachable: await failureOf(() =>
      new Strongroom({ url: 'http://127.0.0.1:9', apiKey: 'key', retries: 0 }).tokens.get('any'),
    ),
    aborted: await vault.tokens
      .get(id, { signal: AbortSignal.abort(new Error('mine')) })
      .catch((error) => error.message),
  };
}

/** The name of the class, whether it is that class here, and that it has a trace id. */
async function failureOf(attempt: () => Promise<unknown>): Promise<string> {
  try {
    await attempt();
    return 'no failure';
  } catch (error) {
    if (!(error instanceof StrongroomError)) return `another error: ${error}`;
    const traceId = (error as { traceId?: string }).traceId;
    const isTraced = typeof traceId === 'string' ? ' with a trace id' : '';
    const isClass = error instanceof NotFoundError || error instanceof ValidationError;
    return `${error.name}${isClass ? '!' : ''}${isTraced}`;
  }
}

export const expected = {
  isSame: true,
  found: true,
  lines: 30,
  charged: [402, false],
  exported: true,
  erased: true,
  intact: true,
  events: ['token.created', 'token.created'],
  gone: 'NotFoundError! with a trace id',
  invalid: 'ValidationError! with a trace id',
  unreachable: 'ConnectionError',
  aborted: 'mine',
};

/** `strongroom demo`: a throw-away vault that shows in a minute what a vault does. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pooledRandom } from '../base/random.ts';
import { readConfig } from '../runtime/config/config.ts';
import { type Running, serve } from '../runtime/serve.ts';
import { type DemoDestination, startDemoDestination } from './demo-destination.ts';
import type { Command } from './terminal/command.ts';
import { readGivenStream } from './terminal/given-text.ts';

/** Published by the card networks for testing; they belong to no customer. */
const cards = [
  { network: 'Visa', number: '4242424242424242' },
  { network: 'Mastercard', number: '5555555555554444' },
  { network: 'American Express', number: '378282246310005' },
];
/** A routing number that exists, with an account number of no meaning. */
const bank = { routing_number: '021000021', account_number: '000123456789' };

const everyTokenPermission = ['token:create', 'token:read', 'token:update', 'token:delete'];

/** The exit code that shells use for an interrupted command. */
const interruptedExit = 130;

export const demo: Command = {
  summary: 'Start a temporary vault, show what it does, and stop.',
  flags: { keep: { kind: 'boolean', meaning: 'keep its data directory' } },
  examples: ['', '--keep'],
  run: async (flags, { stdout }) => {
    const say = (line: string) => void stdout.write(`${line}\n`);
    const dataDir = mkdtempSync(join(tmpdir(), 'strongroom-demo-'));
    const managementKey = pooledRandom()(24).toString('hex');
    const { promise: interrupted, resolve } = Promise.withResolvers<'interrupted'>();
    const interrupt = () => resolve('interrupted');
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, interrupt);
    let running: Running | undefined;
    let destination: DemoDestination | undefined;
    try {
      destination = await startDemoDestination(dataDir);
      running = await serve(
        readConfig({
          STRONGROOM_PORT: '0',
          STRONGROOM_DATA_DIR: dataDir,
          STRONGROOM_LOG_LEVEL: 'warn',
          STRONGROOM_BOOTSTRAP_KEY: managementKey,
          ...destination.environment,
        }),
      );
      const call = createClient(running.url);
      const shown = show({ say, call, management: managementKey, destination });
      return (await Promise.race([shown, interrupted])) === 'interrupted' ? interruptedExit : 0;
    } finally {
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, interrupt);
      await running?.stop();
      destination?.close();
      if (flags['keep'] === true) say(`\nThe vault has stopped. Its data is in ${dataDir}`);
      else rmSync(dataDir, { recursive: true, force: true });
    }
  },
};

interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>> & { readonly id: string; readonly key: string };
}

type Call = (key: string, method: string, path: string, body?: object) => Promise<Answer>;

function createClient(url: string): Call {
  return async (key, method, path, body) => {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const response = await fetch(url + path, {
      method,
      headers: { 'SVC-API-KEY': key, ...(body && { 'content-type': type }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await readGivenStream('the response', response.body);
    return { status: response.status, body: text === '' ? {} : JSON.parse(text) };
  };
}

interface Demo {
  readonly say: (line: string) => void;
  readonly call: Call;
  /** The management key. */
  readonly management: string;
  readonly destination: DemoDestination;
}

/** The demo, which uses only the public interface. It never prints a number that went in. */
async function show({ say, call, management, destination }: Demo): Promise<void> {
  const { url: provider, notified } = destination;
  const title = (text: string) => say(`\n${text}`);
  title('1. Two applications with the least privilege they need');
  const support = await application(call, management, 'support', ['token:read'], 'mask');
  const payments = await application(call, management, 'payments', everyTokenPermission, 'reveal');
  say('   support may read tokens masked; payments may create, change, delete and reveal them.');

  title('2. Card numbers go in, tokens come out');
  const tokens: { name: string; id: string; went: string }[] = [];
  for (const { network, number } of cards) {
    const data = { number, expiration_month: 12, expiration_year: 2030, cvc: '123' };
    const { body } = await call(payments, 'POST', '/tokens', { type: 'card', data });
    tokens.push({ name: network, id: body.id, went: JSON.stringify(data) });
  }
  const account = await call(payments, 'POST', '/tokens', { type: 'bank', data: bank });
  tokens.push({ name: 'Bank account', id: account.body.id, went: JSON.stringify(bank) });
  for (const { name, id } of tokens) say(`   ${name.padEnd(17)} ${id}`);

  title('3. support reads them: masked');
  for (const { name, id } of tokens) {
    const { body } = await call(support, 'GET', `/tokens/${id}`);
    say(`   ${name.padEnd(17)} ${JSON.stringify(body['data'])}`);
  }

  title('4. payments reads them: revealed');
  for (const { name, id, went } of tokens) {
    const { body } = await call(payments, 'GET', `/tokens/${id}`);
    const same = JSON.stringify(body['data']) === went;
    say(
      `   ${name.padEnd(17)} ${same ? 'exactly what went in' : 'NOT what went in'} (not printed here)`,
    );
  }

  const visa = `/tokens/${tokens[0]?.id}`;
  title('5. payments renews the Visa card by merge patch');
  await call(payments, 'PATCH', visa, { data: { expiration_year: 2034 } });
  say(`   ${JSON.stringify((await call(support, 'GET', visa)).body['data'])}`);

  title('6. support tries to delete it');
  const refusal = await call(support, 'DELETE', visa);
  say(`   ${refusal.status} ${refusal.body['title']}: ${refusal.body['detail']}`);

  title('7. A typo in a card number');
  const typo = { number: '4242424242424241' };
  const problem = await call(payments, 'POST', '/tokens', { type: 'card', data: typo });
  for (const [attribute, [message]] of Object.entries(problem.body['errors'] ?? {}))
    say(`   ${problem.status} ${attribute} ${message}`);

  title('8. checkout charges the card at a payment provider, and never holds the number');
  const checkout = await application(call, management, 'checkout', ['proxy:invoke'], 'redact');
  const proxy = { name: 'provider', destination_url: provider };
  const { key } = (await call(management, 'POST', '/proxies', proxy)).body;
  const charge = { card: `{{ ${tokens[0]?.id} | json: '$.number' }}`, amount: 1200 };
  say(`   sent      ${JSON.stringify(charge)}`);
  const charged = await call(checkout, 'POST', `/proxy/charges?svc-proxy-key=${key}`, charge);
  say(`   received  ${JSON.stringify(charged.body)}`);

  title('9. payments deletes a card, and a webhook is notified: signed, and without any data');
  const webhook = { name: 'events', url: `${provider}/events`, events: ['token.deleted'] };
  await call(management, 'POST', '/webhooks', webhook);
  await call(payments, 'DELETE', `/tokens/${tokens[1]?.id}`);
  const { event, signature } = await notified;
  say(`   ${event.type} ${event.data.token.id}`);
  say(`   webhook-signature: ${signature}`);

  title('10. Who saw what: the audit log, newest first');
  const applications = await listOf(call, management, '/applications?size=100');
  const names = new Map(applications.map(({ id, name }) => [id, name]));
  const cardOf = new Map(tokens.map(({ id, name }) => [id, name]));
  for (const entry of await listOf(call, management, '/logs?entity_type=token&size=100')) {
    const { created_at, actor_id = '', entity_id = '', shown, message } = entry;
    const time = created_at?.slice(11, 19);
    const who = names.get(actor_id) ?? 'the vault';
    const what = cardOf.get(entity_id) ?? 'a token';
    const how = shown === undefined ? '' : `, ${shown}`;
    say(`   ${time}  ${who.padEnd(9)} ${what.padEnd(17)} ${message}${how}`);
  }
}

type Listed = Readonly<Record<string, string>>;

async function listOf(call: Call, key: string, path: string): Promise<readonly Listed[]> {
  return (await call(key, 'GET', path)).body['data'] as readonly Listed[];
}

async function application(
  call: Call,
  management: string,
  name: string,
  permissions: readonly string[],
  transform: string,
): Promise<string> {
  const rules = [{ description: name, priority: 1, container: '/', permissions, transform }];
  return (await call(management, 'POST', '/applications', { name, type: 'private', rules })).body
    .key;
}

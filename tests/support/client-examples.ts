/** The examples of the client, in its comments and documents, as programs that run against a tenant of their own. */
import { standardSignatures, webhookSecretKey } from '../../src/keys/webhook-signatures.ts';
import { clientsOf } from './client.ts';
import { linesOfLog } from './logs.ts';
import { createProxy } from './proxies.ts';
import type { Called } from './proxy-calls.ts';
import { webhookSecret } from './receivers.ts';
import { newTenant } from './tenant.ts';
import { visa } from './values.ts';
import type { TestVault } from './vault.ts';

export interface Example {
  /** Where it stands. */
  readonly name: string;
  readonly code: string;
}

/** Blocks of code in a language, also inside a comment. */
export function examplesIn(path: string, text: string, language = 'ts'): Example[] {
  const block = new RegExp(`^([^\\S\\n]*(?:\\* )?)\`\`\`${language}\\n(.*?)^\\1\`\`\``, 'gms');
  const blocks = text.matchAll(block);
  return [...blocks].map(({ index, 1: indent = '', 2: code = '' }) => ({
    name: `${path}:${text.slice(0, index).split('\n').length}`,
    code: code
      .split('\n')
      .map((line) => line.slice(Math.min(indent.length, line.length)))
      .join('\n'),
  }));
}

/** What examples use without saying where it comes from. */
export const worldType = `interface World {
  vault: Strongroom;
  admin: Strongroom;
  site: Strongroom;
  url: string;
  apiKey: string;
  proxyKey: string;
  secret: string;
  body: string;
  headers: Record<string, string>;
  receipt: ErasureReceipt;
  checkpoint: LogCheckpoint;
  publicKeys: string[];
  logExport: string;
  console: { log(...values: unknown[]): void; error(...values: unknown[]): void };
  process: { env: Record<string, string | undefined> };
}`;

const worldNames = [...worldType.matchAll(/^ {2}(\w+):/gm)].map(([, name = '']) => name);

/** A module that exports the example as `run`. */
export function moduleOf({ code }: Example, entries: Readonly<Record<string, string>>): string {
  const imports: string[] = [];
  const rest = code.replace(/^import .*?;$/gms, (statement) => {
    imports.push(statement);
    return '';
  });
  const located = (statement: string) =>
    statement.replace(/'(@strongroom\/client[\w/]*)'/g, (_, name: string) =>
      JSON.stringify(entries[name]),
    );
  const types = 'ErasureReceipt, LogCheckpoint, Strongroom as Client';
  return [
    ...imports.map(located),
    `import type { ${types} } from ${JSON.stringify(entries['@strongroom/client'])};`,
    worldType.replaceAll('Strongroom', 'Client'),
    `export async function run({ ${worldNames.join(', ')} }: World): Promise<void> {{`,
    rest,
    '}}',
    '',
  ].join('\n');
}

/** A tenant with a token, a proxy and a past, for one example. */
export async function worldOf(running: TestVault, called: Called): Promise<object> {
  const tenant = await newTenant(running);
  const clients = await clientsOf(tenant);
  const data = { ...visa };
  const shared = { type: 'card', data, containers: ['/pci/high/'], metadata: { order: '4711' } };
  await tenant.token({ id: 'erased-card', ...shared });
  await clients.vault.tokens.delete('erased-card');
  await tenant.token({ id: 'order-4711-card', ...shared });
  const { key } = await createProxy(tenant, { destination_url: called.url });
  const checkpoint = await clients.admin.logs.checkpoint();
  const timestamp = Math.floor(Date.now() / 1000);
  const event = { id: 'e1', type: 'token.created', timestamp: '', tenant_id: tenant.id, data: {} };
  const body = JSON.stringify({ delivered_at: new Date().toISOString(), event });
  const message = { id: 'e1', timestamp, body: Buffer.from(body) };
  return {
    ...clients,
    url: running.url,
    proxyKey: key,
    secret: webhookSecret,
    body,
    headers: {
      'webhook-id': 'e1',
      'webhook-timestamp': `${timestamp}`,
      'webhook-signature': standardSignatures([webhookSecretKey(webhookSecret)], message),
    },
    receipt: await clients.vault.tokens.erasure('erased-card'),
    checkpoint,
    publicKeys: checkpoint.public_keys,
    logExport: await linesOfLog(running, tenant.id),
    console: { log: () => undefined, error: () => undefined },
    process: {
      env: {
        STRONGROOM_URL: running.url,
        STRONGROOM_KEY: clients.apiKey,
        MANAGEMENT: tenant.managementKey,
        WEBHOOK_SECRET: webhookSecret,
        PROVIDER_URL: called.url,
      },
    },
  };
}

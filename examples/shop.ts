/** A shop: pages that collect a card, and a server that charges it without ever having it. */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { buildPages } from './build-pages.ts';

export const exampleNames: readonly string[] = ['plain', 'react', 'vue', 'checkout'];

const pages = join(import.meta.dirname, 'pages');
const coffeeCents = 1_999;

export interface ShopSetting {
  readonly port: number;
  readonly vault: string;
  readonly managementKey: string;
  /** The payment provider. */
  readonly provider: string;
}

export interface Shop {
  readonly url: string;
  close(): void;
}

interface Given {
  readonly token?: string;
  readonly order?: string;
  readonly nonce?: string;
}

interface VaultKeys {
  /** In the page. */
  readonly publicKey: string;
  /** On the server of the shop alone. */
  readonly privateKey: string;
  readonly proxyKey: string;
}

export async function openShop({
  port,
  vault,
  managementKey,
  provider,
}: ShopSetting): Promise<Shop> {
  const call = callsTo(vault);
  const scripts = await buildPages();
  const server = createServer();
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://localhost:${(server.address() as AddressInfo).port}`;
  const keys = await setUp();
  const { files } = await call('', 'GET', '/fields/v1/digests.json');
  const loader = files.find(({ name }: { name: string }) => name === 'fields/loader.js');
  /** The card of each order. */
  const orders = new Map<string, string>();

  /** What an operator does once: keys with the least that they need, and the way to the provider. */
  async function setUp(): Promise<VaultKeys> {
    const page = await call(managementKey, 'POST', '/applications', {
      name: 'page of the shop',
      type: 'public',
      permissions: ['token:create'],
      origins: [url],
    });
    const everyCard = { priority: 1, container: '/', transform: 'reveal' };
    const application = await call(managementKey, 'POST', '/applications', {
      name: 'server of the shop',
      type: 'private',
      permissions: ['proxy:invoke'],
      rules: [{ ...everyCard, permissions: ['token:use', 'token:read'] }],
    });
    const proxy = await call(managementKey, 'POST', '/proxies', {
      name: 'payment provider',
      destination_url: provider,
      require_auth: true,
    });
    return { publicKey: page.key, privateKey: application.key, proxyKey: proxy.key };
  }

  /** Charges the card of a token. The price is the shop's own, and the number is put in on the way to the provider. */
  async function pay(token: string): Promise<object> {
    if (!/^[\w-]{1,64}$/.test(token)) return { error: 'This is not a card.' };
    const card = `{{ ${token} | json: '$.number' }}`;
    const headers = { 'SVC-PROXY-KEY': keys.proxyKey };
    const charge = { amount: coffeeCents, card };
    const paid = await call(keys.privateKey, 'POST', '/proxy/charges', charge, headers);
    if (paid.approved !== true) return { error: 'The card was declined.' };
    const order = crypto.randomUUID();
    orders.set(order, token);
    return { order, ending: paid.ending };
  }

  /** Lets the page show the card of an order, and no other. A real shop asks who is signed in first. */
  async function showCard({ order, nonce }: Given): Promise<object> {
    const token = orders.get(order ?? '');
    if (token === undefined) return { error: 'There is no such order.' };
    const ofThisToken = { attribute: 'id', operator: 'equals', value: token };
    const permitted = { priority: 1, permissions: ['token:read'], transform: 'reveal' };
    await call(keys.privateKey, 'POST', '/sessions/authorize', {
      nonce,
      rules: [{ ...permitted, conditions: [ofThisToken] }],
    });
    return { token };
  }

  /** Scripts come from the shop and the vault alone, and frames of no other key. */
  const policy = [
    "default-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; base-uri 'none'",
    `script-src 'self' ${vault}/fields/`,
    `frame-src ${vault}/fields/v1/frame/${keys.publicKey}`,
    `connect-src 'self' ${vault}`,
  ].join('; ');

  /** What the page asks of the server of the shop. */
  const actions: Readonly<Record<string, (given: Given) => Promise<object>>> = {
    pay: ({ token = '' }) => pay(token),
    'show-card': showCard,
  };

  async function pageOf(name: string): Promise<string> {
    const html = await readFile(join(pages, `${name}.html`), 'utf8');
    return html
      .replaceAll('{VAULT}', vault)
      .replaceAll('{KEY}', keys.publicKey)
      .replaceAll('{INTEGRITY}', loader.integrity);
  }

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const name = (request.url ?? '').slice(1);
    const action = request.method === 'POST' ? actions[name] : undefined;
    const script = scripts.get(name);
    const send = (type: string, body: string | Uint8Array) =>
      void response.writeHead(200, { 'content-type': `${type}; charset=utf-8` }).end(body);
    if (action) send('application/json', JSON.stringify(await action(await jsonOf(request))));
    else if (script) send('text/javascript', script);
    else if (name === 'style.css') send('text/css', await readFile(join(pages, name)));
    else if (exampleNames.includes(name)) {
      response.setHeader('content-security-policy', policy);
      send('text/html', await pageOf(name));
    } else response.writeHead(404).end();
  }

  server.on('request', (request, response) => {
    respond(request, response).catch((error) => {
      process.stderr.write(`${error}\n`);
      response.writeHead(502, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: 'The shop cannot do that now.' }));
    });
  });

  return {
    url,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function jsonOf(request: IncomingMessage): Promise<Given> {
  return JSON.parse(await text(request));
}

type Call = (
  key: string,
  method: string,
  path: string,
  body?: object,
  headers?: Readonly<Record<string, string>>,
  // biome-ignore lint/suspicious/noExplicitAny: its attributes are those of the API
) => Promise<any>;

function callsTo(vault: string): Call {
  return async (key, method, path, body, more) => {
    const headers = { ...(key !== '' && { 'SVC-API-KEY': key }), ...more };
    const response = await fetch(vault + path, {
      method,
      headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    const answer = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${answer}`);
    return answer === '' ? undefined : JSON.parse(answer);
  };
}

/** Programs behind the forward proxy: a connection through it, secured, and requests on it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { engineOf } from './engines.ts';
import { startCalled } from './proxy-calls.ts';
import type { Lender } from './temporary.ts';
import type { TestTenant } from './tenant.ts';
import { startVault } from './vault.ts';

/** A vault with the forward proxy, and a destination that it may call. */
export async function startEgress(t: Lender) {
  const called = await startCalled(t);
  const environment = {
    ...called.environment,
    STRONGROOM_EGRESS_ADDRESS: '127.0.0.1:0',
    STRONGROOM_THREADS: '1',
  };
  return { called, vault: await startVault(t, engineOf('sqlite'), { environment }) };
}

interface ProxyConnecting {
  /** Of the forward proxy. */
  readonly port: number;
  readonly authority: string;
  readonly key: string | undefined;
}

/** The header with which a program authenticates. */
export const basic = (key: string) => `Basic ${Buffer.from(`agent:${key}`).toString('base64')}`;

/** The response to a CONNECT, and its connection. */
export async function connectTo(
  t: Lender,
  { port, authority, key }: ProxyConnecting,
): Promise<{ status: number; body: string; headers: IncomingMessage['headers']; socket: Socket }> {
  const request = http.request({
    host: '127.0.0.1',
    port,
    method: 'CONNECT',
    path: authority,
    headers: key === undefined ? {} : { 'proxy-authorization': basic(key) },
    agent: false,
  });
  request.end();
  // Node gives every response to a CONNECT as one.
  const [response, socket, head] = (await once(request, 'connect')) as [
    IncomingMessage,
    Socket,
    Buffer,
  ];
  t.after(() => void socket.destroy());
  const { statusCode: status = 0, headers } = response;
  let body = head.toString();
  if (status !== 200) for await (const chunk of socket) body += chunk;
  return { status, body, headers, socket };
}

export async function secure(
  socket: Socket,
  ca: string,
  servername = 'localhost',
): Promise<TLSSocket> {
  const secured = connectTls({ socket, ca, servername });
  await once(secured, 'secureConnect');
  return secured;
}

export interface Sending {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface ProgramResponse {
  readonly status: number | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
  readonly trailers: IncomingMessage['trailers'];
}

export async function sendOn(
  secured: TLSSocket,
  authority: string,
  { method = 'POST', path = '/v1/x', headers, body }: Sending,
): Promise<ProgramResponse> {
  const request = http.request({
    method,
    path,
    headers: {
      host: authority,
      ...headers,
      ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }),
    },
    createConnection: () => secured,
  });
  request.end(body);
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk);
  return {
    status: response.statusCode,
    headers: response.headers,
    text: Buffer.concat(chunks).toString(),
    trailers: response.trailers,
  };
}

/** An application whose programs hold a placeholder for the number of the tenant's token `card`. */
export interface Agent {
  readonly tenant: TestTenant;
  readonly id: string;
  readonly key: string;
  readonly ca: string;
  readonly number: string;
}

export async function newAgent(tenant: TestTenant, policy: object): Promise<Agent> {
  const made = await tenant.send('POST', '/applications', {
    key: tenant.managementKey,
    body: {
      name: 'shopping agent',
      type: 'private',
      permissions: ['proxy:invoke'],
      egress: [policy],
    },
  });
  assert.equal(made.status, 201, made.text);
  const { id, key } = made.body;
  const authority = await tenant.send('GET', '/egress/authority', { key });
  const placeholder = await tenant.send('POST', '/placeholders', {
    key,
    body: { token_id: 'card', property: 'number' },
  });
  assert.equal(placeholder.status, 201, placeholder.text);
  const { certificate: ca } = authority.body;
  return { tenant, id, key, ca, number: placeholder.body.placeholder };
}

export interface BegunRequest {
  /** `undefined` if the connection ended before. */
  readonly response: Promise<ProgramResponse | undefined>;
  /** Gives up, as a program does. */
  readonly leave: () => void;
}

/** A request with the placeholder in its body, unless given otherwise, whose response comes later. */
export async function beginRequest(
  t: Lender,
  { tenant, key, ca, number }: Agent,
  { authority, ...sending }: Sending & { readonly authority: string },
): Promise<BegunRequest> {
  const port = Number(new URL(tenant.vault.running.egressUrl ?? '').port);
  const { socket } = await connectTo(t, { port, authority, key });
  const secured = await secure(socket, ca);
  const response = sendOn(secured, authority, {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ card: { number } }),
    ...sending,
  }).catch(() => undefined);
  return { response, leave: () => void socket.destroy() };
}

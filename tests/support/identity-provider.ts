/** A real identity provider for tests (`oidc-provider`), and browsers without pages that sign in at it. */
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { installed, reasonWithout } from './development-packages.ts';
import type { Lender } from './temporary.ts';
import { type Received, request } from './vault.ts';

const provider = await installed('oidc-provider');

/** The reason to skip a test that needs the provider, or false. */
export const withoutProvider = reasonWithout({ 'oidc-provider': provider });

export const clientId = 'strongroom';
export const clientSecret = 'a secret of the tests only, of no other client';

export type Claims = Readonly<Record<string, unknown>>;

export interface ProviderOptions {
  /** Of the vault, as browsers reach it. */
  readonly publicUrl: string;
  /** Where it is reached from here. */
  readonly vaultUrl?: () => string;
  /** When people prove who they are. */
  readonly now?: () => number;
  /** Shows a page with a button before it lets anybody in. */
  readonly asks?: boolean;
}

export interface TestProvider {
  readonly issuer: string;
  /** By subject. Tests change what it says about people. */
  readonly people: Map<string, Claims>;
  /** Whom it lets in next. */
  present: string;
  /** From now on it signs with another key, and shows that key alone. */
  rotateKeys(): void;
  /** So many requests to a path. */
  count(path: string): number;
  stop(): Promise<void>;
}

export async function startProvider(t: Lender, options: ProviderOptions): Promise<TestProvider> {
  const people = new Map<string, Claims>();
  const counts = new Map<string, number>();
  let handle: (request: IncomingMessage, response: ServerResponse) => void = () => undefined;
  const server = createServer((request, response) => {
    const path = (request.url ?? '').split('?')[0] ?? '';
    counts.set(path, (counts.get(path) ?? 0) + 1);
    handle(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const started: TestProvider = {
    issuer,
    people,
    present: '',
    rotateKeys: () => {
      handle = openProvider(issuer, started, options);
    },
    count: (path) => counts.get(path) ?? 0,
    stop: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
  started.rotateKeys();
  t.after(started.stop);
  return started;
}

function openProvider(
  issuer: string,
  known: Pick<TestProvider, 'people' | 'present'>,
  { publicUrl, vaultUrl, now = Date.now, asks = false }: ProviderOptions,
) {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const opened = new provider.default(issuer, {
    clients: [
      {
        client_id: clientId,
        client_secret: clientSecret,
        redirect_uris: [`${publicUrl}/console/oidc`],
        post_logout_redirect_uris: [`${publicUrl}/console`],
        backchannel_logout_uri: `${publicUrl}/console/session/oidc/logout`,
      },
    ],
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256' }] },
    cookies: { keys: ['of the tests only'] },
    claims: {
      openid: ['sub'],
      profile: ['name', 'preferred_username'],
      email: ['email', 'email_verified'],
      groups: ['groups'],
    },
    conformIdTokenClaims: false,
    features: {
      devInteractions: { enabled: false },
      backchannelLogout: { enabled: true },
      // Its own page loads a font from elsewhere.
      rpInitiatedLogout: { enabled: true, logoutSource },
    },
    // Its own way to call refuses addresses of this machine.
    fetch: (url: URL | string, { method, headers, body }: CalledWith) =>
      fetch(String(url).replace(publicUrl, vaultUrl?.() ?? publicUrl), { method, headers, body }),
    interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    findAccount: (_: unknown, sub: string) => ({
      accountId: sub,
      claims: () => ({ sub, ...known.people.get(sub) }),
    }),
    loadExistingGrant: async (ctx: LoadedContext) => {
      const { client, session } = ctx.oidc;
      const grant = new opened.Grant({ clientId: client.clientId, accountId: session.accountId });
      grant.addOIDCScope('openid profile email groups');
      await grant.save();
      return grant;
    },
  });
  const callback = opened.callback();
  return (request: IncomingMessage, response: ServerResponse): void => {
    if (!request.url?.startsWith('/interaction/')) {
      callback(request, response);
      return;
    }
    if (asks && request.method === 'GET') {
      response.setHeader('content-type', 'text/html; charset=utf-8');
      response.end(
        `<!doctype html><title>Provider</title><form method="post"><button>Let ${known.present} in</button></form>`,
      );
      return;
    }
    const result = { login: { accountId: known.present, ts: Math.floor(now() / 1_000) } };
    void opened.interactionFinished(request, response, result);
  };
}

type CalledWith = Required<Pick<RequestInit, 'method' | 'headers' | 'body'>>;

async function logoutSource(ctx: { body: string; type: string }, form: string): Promise<void> {
  ctx.type = 'html';
  const attributes = 'form="op.logoutForm" name="logout" value="yes"';
  ctx.body = `<!doctype html><title>Provider</title>${form}<button ${attributes}>Yes, sign me out</button>`;
}

interface LoadedContext {
  readonly oidc: {
    readonly client: { readonly clientId: string };
    readonly session: { readonly accountId: string };
  };
}

/** A sign-in that has begun at the vault. */
export interface BegunSignIn {
  /** At the provider. */
  readonly url: URL;
  /** With what it began, as the browser sends it. */
  readonly cookie: string;
}

/** What a page of the console asks for before it sends the person to the provider. */
export async function beginSignIn(
  vaultUrl: string,
  body: object = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<BegunSignIn> {
  const begun = await request(`${vaultUrl}/console/session/oidc`, 'POST', { body, headers });
  if (begun.status !== 200) throw new Error(begun.text);
  const [cookie = ''] = (begun.headers.get('set-cookie') ?? '').split(';');
  return { url: new URL(begun.body.url), cookie };
}

/** What the page does with the query with which the provider sends the person back. */
export function endSignIn(
  vaultUrl: string,
  { cookie }: Pick<BegunSignIn, 'cookie'>,
  response: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Received> {
  const cookies = [cookie, headers['cookie']].filter(Boolean).join('; ');
  return request(`${vaultUrl}/console/session/oidc/response`, 'POST', {
    body: { response },
    headers: { ...headers, cookie: cookies },
  });
}

/** The cookies of a browser at the provider, by name. */
export type Jar = Map<string, string>;

/** Follows the provider until it sends the person back to the console. @returns the query. */
export async function visitProvider(start: URL, jar: Jar = new Map()): Promise<string> {
  let url = start;
  for (let hops = 0; hops < 10; hops++) {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(url, { redirect: 'manual', headers: { cookie } });
    await response.arrayBuffer();
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      jar.set(name, value);
    }
    const location = response.headers.get('location');
    if (location === null) throw new Error(`the provider responded with ${response.status}`);
    url = new URL(location, url);
    if (url.pathname === '/console/oidc') return url.search;
  }
  throw new Error('the provider redirects without an end');
}

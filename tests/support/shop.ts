/** A shop in another origin than the vault: its pages, and a browser that shows them. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Lender } from './temporary.ts';
import type { TestVault } from './vault.ts';

export interface Shop {
  readonly origin: string;
  /** The path of a page with this body, and more headers if any. */
  page(body: string, headers?: Readonly<Record<string, string>>): string;
}

/** On `localhost`, which is another site than the vault's 127.0.0.1. */
export async function openShop(t: Lender): Promise<Shop> {
  const pages = new Map<string, { body: string; headers: Readonly<Record<string, string>> }>();
  const server = createServer((request, response) => {
    const found = pages.get((request.url ?? '').split('?', 1)[0] ?? '');
    if (!found) response.writeHead(404).end();
    else response.writeHead(200, { 'content-type': 'text/html', ...found.headers }).end(found.body);
  });
  server.listen(0, 'localhost');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const origin = `http://localhost:${(server.address() as AddressInfo).port}`;
  return {
    origin,
    page: (body, headers = {}) => {
      const path = `/page-${pages.size}`;
      pages.set(path, { body, headers });
      return `${origin}${path}`;
    },
  };
}

/** The id and the public key of an application that lists the origin. */
export async function publicApplication(
  vault: TestVault,
  origins: readonly string[] | undefined,
  permissions: readonly string[] = ['token:create'],
): Promise<string> {
  return vault.application({ name: 'page', type: 'public', permissions, origins });
}

/** The markup of a page with the loader of the vault. */
export function withLoader({ url }: TestVault, rest: string): string {
  return `<!doctype html><html lang="en"><head><title>Shop</title></head><body><main><h1>Shop</h1>
<script src="${url}/fields/v1/loader.js" crossorigin="anonymous"></script>${rest}</main></body></html>`;
}

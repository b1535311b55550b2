/** Proxies: where requests go, and what is done to them. */
import type { RequestOptions } from './connection.ts';
import type { List } from './list.ts';
import { Resource } from './resource.ts';
import type {
  ListProxiesQuery,
  Proxy as ProxyDefinition,
  ProxyPatch,
  ProxyRequest,
} from './wire.ts';

/**
 * Proxies, as `vault.proxies`. They need a management key; `vault.proxy.fetch` calls one.
 *
 * @example
 * ```ts
 * const proxy = await admin.proxies.create({
 *   name: 'Charge',
 *   destination_url: 'https://api.psp.example.com/v1',
 *   allowed_methods: ['POST'],
 * });
 * ```
 */
export class Proxies extends Resource {
  /**
   * Creates a proxy. Its `key` is for those who call it.
   *
   * @example
   * ```ts
   * const { id, key } = await admin.proxies.create({
   *   name: 'Charge',
   *   destination_url: 'https://api.psp.example.com/v1',
   *   configuration: { PSP_KEY: 'sk_test' },
   * });
   * ```
   */
  create(request: ProxyRequest, options?: RequestOptions): Promise<ProxyDefinition> {
    return this.call('createProxy', { body: request }, options);
  }

  /**
   * Reads a proxy.
   *
   * @example
   * ```ts
   * const destination_url = 'https://api.psp.example.com';
   * const { id } = await admin.proxies.create({ name: 'Charge', destination_url });
   * const proxy = await admin.proxies.get(id);
   * ```
   */
  get(id: string, options?: RequestOptions): Promise<ProxyDefinition> {
    return this.call('getProxy', { params: { id } }, options);
  }

  /**
   * Changes a proxy by JSON merge patch: members that are absent stay, and null removes.
   *
   * @example
   * ```ts
   * const destination_url = 'https://api.psp.example.com';
   * const { id } = await admin.proxies.create({ name: 'Charge', destination_url });
   * await admin.proxies.update(id, { timeout: 60 });
   * ```
   */
  update(id: string, patch: ProxyPatch, options?: RequestOptions): Promise<object> {
    return this.call('updateProxy', { params: { id }, body: patch }, options);
  }

  /**
   * Replaces everything but the key. What is absent takes its default.
   *
   * @example
   * ```ts
   * const destination_url = 'https://api.psp.example.com';
   * const { id } = await admin.proxies.create({ name: 'Charge', destination_url });
   * await admin.proxies.replace(id, { name: 'Charge cards', destination_url });
   * ```
   */
  replace(id: string, request: ProxyRequest, options?: RequestOptions): Promise<ProxyDefinition> {
    return this.call('replaceProxy', { params: { id }, body: request }, options);
  }

  /**
   * Deletes a proxy.
   *
   * @example
   * ```ts
   * const destination_url = 'https://api.psp.example.com';
   * const { id } = await admin.proxies.create({ name: 'Charge', destination_url });
   * await admin.proxies.delete(id);
   * ```
   */
  delete(id: string, options?: RequestOptions): Promise<void> {
    return this.call('deleteProxy', { params: { id } }, options);
  }

  /**
   * Proxies, newest first.
   *
   * @example
   * ```ts
   * for await (const { name, destination_url } of admin.proxies.list({ name: 'Cha*' })) {
   *   console.log(name, destination_url);
   * }
   * ```
   */
  list(query: ListProxiesQuery = {}, options?: RequestOptions): List<ProxyDefinition> {
    return this.pagesOf('listProxies', { query }, options);
  }
}

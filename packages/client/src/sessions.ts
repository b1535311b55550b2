/** Sessions: keys for some minutes. */
import type { RequestOptions } from './connection.ts';
import type { List } from './list.ts';
import { Resource } from './resource.ts';
import type { ListSessionsQuery, LiveSession, Session, SessionAuthorization } from './wire.ts';

/**
 * Sessions, as `vault.sessions`: a page creates one with its public key, its server authorizes the nonce with a private
 * key, and then the page acts with the session key for some minutes.
 *
 * @example
 * ```ts
 * import { Strongroom } from '@strongroom/client';
 *
 * const { session_key, nonce } = await site.sessions.create(); // in the page
 * await vault.sessions.authorize({ nonce, permissions: ['token:create'] }); // on the server
 * const page = new Strongroom({ url, apiKey: session_key }); // in the page again
 * await page.tokens.create({ type: 'token', data: 'Ada Lovelace' });
 * ```
 */
export class Sessions extends Resource {
  /**
   * Creates a session, which may do nothing yet. It needs a public key.
   *
   * @example
   * ```ts
   * const { session_key, nonce, expires_at } = await site.sessions.create();
   * ```
   */
  create(options?: RequestOptions): Promise<Session> {
    return this.call('createSession', {}, options);
  }

  /**
   * Gives a session permissions, rules or both, once. It needs a private key, and gives no more than that key has.
   *
   * @throws ConflictError for a nonce that was used.
   * @example
   * ```ts
   * const { nonce } = await site.sessions.create();
   * await vault.sessions.authorize({
   *   nonce,
   *   rules: [{ priority: 1, container: '/pci/', permissions: ['token:read'], transform: 'mask' }],
   * });
   * ```
   */
  authorize(authorization: SessionAuthorization, options?: RequestOptions): Promise<void> {
    return this.call('authorizeSession', { body: authorization }, options);
  }

  /**
   * The sessions that are alive, newest first. It needs a management key.
   *
   * @example
   * ```ts
   * for await (const { id, expires_at } of admin.sessions.list()) console.log(id, expires_at);
   * ```
   */
  list(query: ListSessionsQuery = {}, options?: RequestOptions): List<LiveSession> {
    return this.pagesOf('listSessions', { query }, options);
  }

  /**
   * Ends a session. Its key is refused from then on. It needs a management key.
   *
   * @example
   * ```ts
   * await site.sessions.create();
   * const [session] = await admin.sessions.list().toArray(1);
   * await admin.sessions.delete(session?.id ?? '');
   * ```
   */
  delete(id: string, options?: RequestOptions): Promise<void> {
    return this.call('deleteSession', { params: { id } }, options);
  }
}

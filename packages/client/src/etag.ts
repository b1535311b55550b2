/** The tags of states that responses have, beside their attributes. */

const tags = new WeakMap<object, string>();

/**
 * The tag of the state in which the vault gave it, where it has one. Equal tags are of one state, and tell no more.
 * What a change returns that the vault sends no body for has one as well.
 *
 * @example
 * ```ts
 * import { etagOf } from '@strongroom/client';
 *
 * const destination_url = 'https://api.psp.example.com';
 * const proxy = await admin.proxies.create({ name: 'Charge', destination_url });
 * // Throws a ConflictError where somebody else has changed it meanwhile.
 * const changed = await admin.proxies.update(proxy.id, { timeout: 60 }, { ifMatch: etagOf(proxy) });
 * await admin.proxies.delete(proxy.id, { ifMatch: etagOf(changed) });
 * ```
 */
export function etagOf(response: object): string | undefined {
  return tags.get(response);
}

/** The body of a response, with its tag. */
export function tagged(body: unknown, etag: string | null): unknown {
  if (etag !== null && typeof body === 'object' && body !== null) tags.set(body, etag);
  return body;
}

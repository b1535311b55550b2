/** What a page may be given of an application: its public key. */
import type { Problem } from './protocol.ts';

const keyForm = /^key_(?:test|prod)_(pub|pvt|mgt|ses)_[0-9A-Za-z]{49}$/;

/** What is wrong with the key, for the developer of the page; `undefined` if it is a public key. */
export function flawOfKey(key: unknown): Problem | undefined {
  const kind = typeof key === 'string' ? keyForm.exec(key)?.[1] : undefined;
  if (kind === 'pub') return undefined;
  if (kind === 'pvt' || kind === 'mgt') {
    const message =
      'This is a secret key, and this page has published it. ' +
      'Revoke it now, and use the key of a public application.';
    return { code: 'key_secret', message };
  }
  return {
    code: 'key_invalid',
    message: 'This is not the key of a public application (key_…_pub_…).',
  };
}

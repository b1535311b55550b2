/** Sessions: short-lived keys that hold what an application granted them, and nothing before. */

import { day, minute } from '../../base/clock.ts';
import { VaultError } from '../../base/errors.ts';
import { hashSessionNonce } from '../../keys/session-nonce.ts';
import { requireProven } from '../../rules/proven-row.ts';
import type { Tenant } from '../../rules/tenant.ts';
import { sessionWithNonce } from '../../store/queries/sessions.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';

export const sessionLifeMs = 3 * minute;
export const sessionLifeMsMax = day;

/** A session ends with the keys that created and authorized it, so a person cannot do either. */
export function needsKey(): VaultError {
  return new VaultError('forbidden', { public: 'This request needs an API key.' });
}

/**
 * The session that the nonce was given for, whether or not it has expired.
 * @throws VaultError `integrity` when it was altered.
 */
export async function sessionOfNonce(
  store: Store,
  tenant: Tenant,
  nonce: string,
): Promise<Row<'sessions'> | undefined> {
  const [row] = await store.select(sessionWithNonce(tenant.id, hashSessionNonce(nonce)));
  return row && requireProven(tenant, 'sessions', row);
}

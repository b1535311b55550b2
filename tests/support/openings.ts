/** Openings in tests, which account to no log. */
import type { Keyring } from '../../src/crypto/keyring.ts';
import type { TenantId } from '../../src/lib/ids.ts';
import { grantOf, type Opener, openerOf } from '../../src/rules/openings.ts';

export const testGrant = grantOf('load keyrings');

export function testOpener(tenant: { readonly id: TenantId; readonly keyring: Keyring }): Opener {
  return openerOf('load keyrings', tenant);
}

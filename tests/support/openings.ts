/** Openings in tests, which account to no log. */

import type { TenantId } from '../../src/base/ids.ts';
import type { Keyring } from '../../src/keys/keyring.ts';
import { grantOf, type Opener, openerOf } from '../../src/rules/openings.ts';

export const testGrant = grantOf('load keyrings');

export function testOpener(tenant: { readonly id: TenantId; readonly keyring: Keyring }): Opener {
  return openerOf('load keyrings', tenant);
}

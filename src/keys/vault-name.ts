/** The public name of a vault, which all of its servers have: it says nothing of the root key that it comes from. */
import { createHmac, type KeyObject } from 'node:crypto';

const purpose = 'strongroom name of the vault';
const digitsMax = 16;

/** Such as `strongroom-0f4c1d9b8a7e6532`. The same for as long as the vault exists. */
export function vaultName(rootKey: KeyObject): string {
  const digits = createHmac('sha256', rootKey).update(purpose).digest('hex').slice(0, digitsMax);
  return `strongroom-${digits}`;
}

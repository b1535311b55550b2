/** The id of a vault, to which all wrapped keys are bound, and the public name that comes from it. */
import { createHmac, type KeyObject } from 'node:crypto';
import type { Random } from '../base/random.ts';

const formerPurpose = 'strongroom name of the vault';
const nameDigits = 16;
const idBytes = 16;

/**
 * The id of a new vault: 32 hexadecimal digits, the same for as long as the vault exists.
 * @param former the root key of a vault that an earlier release made. That release derived the vault's name from it,
 * and the name stays.
 */
export function newVaultId(random: Random, former?: KeyObject): string {
  const id = random(idBytes).toString('hex');
  if (former === undefined) return id;
  const digits = createHmac('sha256', former).update(formerPurpose).digest('hex');
  return digits.slice(0, nameDigits) + id.slice(nameDigits);
}

/** Such as `strongroom-0f4c1d9b8a7e6532`, which all servers of a vault have. */
export function vaultName(id: string): string {
  return `strongroom-${id.slice(0, nameDigits)}`;
}

/**
 * How far a rotation is, as the keyring says. An attacker with write access to the database can alter or remove the row
 * of a rotation. The keyring is sealed, so it is what the vault believes.
 */
import type { Keyring, Purpose } from '../../keys/keyring.ts';
import type { RotationKind, RotationPhase } from '../../store/key-tables.ts';

export interface KeyringStep {
  readonly purpose: RotationKind;
  readonly phase: Extract<RotationPhase, 'announced' | 'sealing'>;
}

/** Which rotation a key that is not active yet is of. Several keys are new together, and the first of them tells. */
const rotationOf: readonly (readonly [Purpose, RotationKind])[] = [
  ['fingerprint', 'fingerprint'],
  ['search', 'search'],
  ['reply', 'data'],
  ['data', 'period'],
  ['webhook', 'webhooks'],
  ['audit', 'log'],
];

/** The rotation that has changed the keyring and is not finished; `undefined` when there is none. */
export function keyringStep(keyring: Keyring): KeyringStep | undefined {
  for (const [key, purpose] of rotationOf) {
    if (keyring.versions[key].length > keyring.activeVersion(key)) {
      return { purpose, phase: 'announced' };
    }
  }
  const { resealing } = keyring;
  return resealing && { purpose: resealing, phase: 'sealing' };
}

/**
 * What a sign-in began with: a challenge for a passkey, or a request to the identity provider. Before it ends, nobody
 * is known for whom it could be stored, so the browser keeps it, sealed.
 */
import { type Clock, type Instant, minute } from '../../base/clock.ts';
import { isIntegrityError } from '../../base/errors.ts';
import type { Random } from '../../base/random.ts';
import type { VaultKeys } from '../keyrings/vault-keys.ts';

/** The time that a person has to use a passkey, or to sign in with the identity provider. */
export const flowLifeMs = 10 * minute;

export interface Flow {
  /** 256 random bits, base64url. */
  readonly challenge: string;
  readonly begunAt: Instant;
  /** What else it began with, such as the person who adds a passkey. */
  readonly details: Readonly<Record<string, string>>;
}

/** A flow for one purpose opens for no other. */
export type FlowPurpose = 'passkey' | 'new passkey' | 'identity';

export interface Flows {
  begin(
    purpose: FlowPurpose,
    details?: Flow['details'],
  ): Promise<{ readonly flow: Flow; readonly sealed: string }>;
  /** `undefined` for one that has expired, or that the vault did not seal for this purpose. */
  open(purpose: FlowPurpose, sealed: string): Promise<Flow | undefined>;
}

export interface FlowTools {
  readonly vaultKeys: Pick<VaultKeys, 'seal' | 'open'>;
  readonly clock: Clock;
  readonly random: Random;
}

const sealedLengthMax = 3_000;

export function createFlows({ vaultKeys, clock, random }: FlowTools): Flows {
  const bindingOf = (purpose: FlowPurpose) => ({ tenant: '', id: 'sign-in', field: purpose });
  return {
    begin: async (purpose, details = {}) => {
      const challenge = random(32).toString('base64url');
      const flow = { challenge, begunAt: clock.now(), details };
      const { bytes } = await vaultKeys.seal({
        binding: bindingOf(purpose),
        text: JSON.stringify(flow),
      });
      return { flow, sealed: Buffer.from(bytes).toString('base64url') };
    },
    open: async (purpose, text) => {
      const sealed = Buffer.from(text, 'base64url');
      // Node skips what is not base64url.
      if (text.length > sealedLengthMax || sealed.toString('base64url') !== text) return undefined;
      try {
        const binding = bindingOf(purpose);
        const opened = await vaultKeys.open({ job: 'continue sign-ins', binding, sealed });
        const flow: Flow = JSON.parse(opened);
        return clock.now() - flow.begunAt < flowLifeMs ? flow : undefined;
      } catch (error) {
        if (isIntegrityError(error)) return undefined;
        throw error;
      }
    },
  };
}

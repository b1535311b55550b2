/** The failure of an engine that cannot be reached or cannot write. */
import { VaultError } from '../lib/errors.ts';

/** @param internal what the engine said, for the operator; it never holds a bound value. */
export function unavailable(internal: string, cause?: unknown): VaultError {
  return new VaultError('unavailable', {
    public: 'The vault cannot reach its storage at the moment. Nothing was done; try again.',
    internal,
    headers: { 'retry-after': '1' },
    cause,
  });
}

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

/**
 * The failure of an engine that was told to commit and went away before it answered: only the engine
 * knows whether it did, so the caller is not told that nothing was done.
 */
export function uncertain(internal: string, cause?: unknown): VaultError {
  return new VaultError('unavailable', {
    public:
      'The vault lost its storage while writing, and cannot tell whether the request was done. ' +
      'Repeat it with its idempotency key, or look.',
    internal,
    headers: { 'retry-after': '1' },
    cause,
  });
}

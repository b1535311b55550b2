/** The failures of an engine: it cannot be reached, cannot write, cannot keep up, or cannot take a value. */
import { integrityError, VaultError } from '../base/errors.ts';

const retryAfter = { 'retry-after': '1' } as const;

/** @param internal what the engine said, for the operator; it never holds a bound value. */
export function unavailable(internal: string, cause?: unknown): VaultError {
  return new VaultError('unavailable', {
    public: 'The vault cannot reach its storage at the moment. Nothing was done; try again.',
    internal,
    headers: retryAfter,
    cause,
  });
}

/** The failure of a change that grows, while the disk has only the room that reading and deleting need. */
export function insufficientStorage(cause?: unknown): VaultError {
  return new VaultError('insufficient_storage', {
    public:
      'The storage of the vault is nearly full, and this request would store more. Nothing was done. ' +
      'Reading and deleting go on.',
    internal: 'the storage is nearly full: free some space, or enlarge it',
    headers: { 'retry-after': '60' },
    cause,
  });
}

/** The failure of a request that came while too many others were waiting. */
export function overloaded(internal: string): VaultError {
  return new VaultError('overloaded', {
    public: 'The vault is overloaded. Nothing was done; try again.',
    internal,
    headers: retryAfter,
  });
}

/**
 * The failure of an engine that disappeared before it acknowledged a commit. Only the engine knows whether it
 * committed, so the error does not say that nothing was done.
 */
export function uncertain(internal: string, cause?: unknown): VaultError {
  return new VaultError('unavailable', {
    public:
      'The vault lost its storage while writing and does not know whether the request was done. ' +
      'Retry it with its idempotency key, or check the result.',
    internal,
    headers: retryAfter,
    cause,
  });
}

const impossibleInteger = 'an integer of the database is larger than any that the vault writes';

/** The failure to read a row that the vault cannot have written. */
export function impossible(cause: unknown, internal = impossibleInteger): VaultError {
  return integrityError(internal, { cause });
}

/**
 * The failure of a change that the engine will never accept, which is a mistake of ours.
 * @param internal where the engine failed. Its messages about values may quote them.
 */
export function unstorable(internal: string, cause?: unknown): VaultError {
  return new VaultError('internal', {
    public:
      'The vault failed to store the request. Nothing was done, and a retry will fail as well.',
    internal,
    cause,
  });
}

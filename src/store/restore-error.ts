/** A restore is refused, or its backup cannot be used. The message names the part, and no value. */
export class RestoreError extends Error {
  override readonly name = 'RestoreError';
}

/** Finds the first of several servers to respond. Each is tried without waiting for a silent one before it. */

/** None of the servers can be used, and why each cannot. */
export class NoPrimaryError extends Error {
  override readonly name = 'NoPrimaryError';
}

/** Then the next host is tried as well: the one before may be a machine that is gone without a word. */
const headStartMs = 500;

/**
 * The first that succeeds. Each begins when the one before has failed, or is late; those that succeed too
 * late are given back. Where all fail, with the error of the first that says more than "not this one".
 */
export function firstOf<T>(
  attempts: readonly (() => Promise<T>)[],
  giveBack: (late: T) => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const errors: unknown[] = [];
    let begun = 0;
    let failed = 0;
    let isSettled = false;
    let timer: NodeJS.Timeout | undefined;
    const fail = (index: number, error: unknown) => {
      errors[index] = error;
      if (++failed === attempts.length) reject(reasonOf(errors));
      else if (!isSettled) next();
    };
    const next = () => {
      clearTimeout(timer);
      const index = begun++;
      const attempt = attempts[index];
      if (attempt === undefined) return;
      if (begun < attempts.length) timer = setTimeout(next, headStartMs);
      attempt().then(
        (result) => {
          clearTimeout(timer);
          if (isSettled) return giveBack(result);
          isSettled = true;
          resolve(result);
        },
        (error) => fail(index, error),
      );
    };
    next();
  });
}

/** For one host, its own error. For several, the problem of each; the cause is that of the first attempt. */
function reasonOf(errors: readonly unknown[]): unknown {
  if (errors.length === 1) return errors[0];
  const reasons = errors.map((error) => (error instanceof Error ? error.message : 'failed'));
  return new NoPrimaryError(`no server accepts writes: ${reasons.join('; ')}`, {
    cause: errors[0],
  });
}

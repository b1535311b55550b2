/** Collects all errors of a request, so that one response lists all of them. */
import { type AttributeErrors, invalid, VaultError } from './errors.ts';

/** The maximum number of messages in one response. After that many, no further checks run. */
export const messagesMax = 100;

export interface ValidationErrors {
  add(path: string, message: string): void;
  /** Runs a check and records its errors; returns `undefined` if there are any. */
  attempt<T>(check: () => T): T | undefined;
  /** @throws VaultError `validation_failed` if any error was recorded. */
  settle(): void;
}

/**
 * Runs a check of attributes below `path`.
 * @throws VaultError the error of the check, with the full paths of the attributes.
 */
export function attemptAt<T>(path: string, check: () => T): T {
  try {
    return check();
  } catch (error) {
    throw error instanceof VaultError ? below(path, error) : error;
  }
}

/** Returns the error with the full paths of its attributes. */
export function below(path: string, error: VaultError): VaultError {
  if (path === '' || !error.errors) return error;
  const whole = (name: string) => (name.startsWith('[') ? path + name : `${path}.${name}`);
  const errors = Object.fromEntries(
    Object.entries(error.errors).map(([name, texts]) => [whole(name), texts]),
  );
  const { code, public: detail, message: internal, headers, cause } = error;
  return new VaultError(code, {
    public: detail,
    internal,
    errors,
    ...(headers && { headers }),
    cause,
  });
}

export function createValidationErrors(): ValidationErrors {
  const found = new Map<string, string[]>();
  let messages = 0;
  const add = (path: string, message: string) => {
    if (messages >= messagesMax) return;
    messages += 1;
    const known = found.get(path);
    if (known) known.push(message);
    else found.set(path, [message]);
  };
  const addAll = (errors: AttributeErrors) => {
    for (const [path, texts] of Object.entries(errors)) {
      for (const text of texts) add(path, text);
    }
  };
  return {
    add,
    attempt: (check) => {
      if (messages >= messagesMax) return undefined;
      try {
        return check();
      } catch (error) {
        if (!(error instanceof VaultError) || error.errors === undefined) throw error;
        addAll(error.errors);
        return undefined;
      }
    },
    settle: () => {
      if (found.size > 0) throw invalid(Object.fromEntries(found));
    },
  };
}

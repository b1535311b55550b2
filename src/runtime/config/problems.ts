/** Collects all problems of the configuration, to report them together. */

/** Variables are missing or have values they cannot have. The message never holds a value. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  /** A sentence for each, which begins with the name of the variable. */
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    const [first = ''] = problems;
    super(
      problems.length === 1
        ? first
        : `${problems.length} problems in the configuration:\n${problems.map((text) => `  ${text}`).join('\n')}`,
    );
    this.problems = problems;
  }
}

export function wrongVariable(variable: string, problem: string): ConfigError {
  return new ConfigError([`${variable} ${problem}.`]);
}

type Readers<T> = { readonly [N in keyof T]: () => T[N] };

/**
 * What all of the readers return.
 * @throws ConfigError with the problems of all of them; one that two report is there once.
 */
export function readAll<T extends object>(readers: Readers<T>): T {
  const problems = new Set<string>();
  const entries = Object.entries<() => unknown>(readers).map(([name, read]) => {
    try {
      return [name, read()] as const;
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      for (const problem of error.problems) problems.add(problem);
      return [name, undefined] as const;
    }
  });
  if (problems.size > 0) throw new ConfigError([...problems]);
  return Object.fromEntries(entries) as T;
}

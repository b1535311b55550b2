/** The findings of `strongroom doctor`: one line for each check. */

export interface Finding {
  readonly check: string;
  readonly status: 'ok' | 'warning' | 'problem';
  readonly message: string;
  /** How to fix it. */
  readonly advice?: string;
}

/** Findings of one check. */
export function reporter(check: string) {
  return {
    ok: (message: string): Finding => ({ check, status: 'ok', message }),
    warning: (message: string, advice: string): Finding => ({
      check,
      status: 'warning',
      message,
      advice,
    }),
    problem: (message: string, advice: string): Finding => ({
      check,
      status: 'problem',
      message,
      advice,
    }),
  };
}

/** The error classes with which code chooses a response, and the report for any thrown value. */

import type { ErrorsPart, ReportedError } from './parts.ts';

export function errors(): ErrorsPart {
  const { stringify } = JSON;
  const reports = new WeakMap<object, ReportedError>();
  const getReport = WeakMap.prototype.get.call.bind(WeakMap.prototype.get) as unknown as (
    map: typeof reports,
    key: object,
  ) => ReportedError | undefined;
  const textLengthMax = 2_000;
  const propertiesMax = 50;
  const supportText = 'An unexpected error occurred. If the problem persists, contact support.';

  function textOf(value: unknown): string {
    if (typeof value === 'string') return value.slice(0, textLengthMax);
    const seen = new Set<unknown>();
    const text = stringify(value, (_key, member) => {
      if (typeof member !== 'object' || member === null) return member;
      if (seen.has(member)) return '[Circular]';
      seen.add(member);
      return member;
    });
    return String(text).slice(0, textLengthMax);
  }

  function listOf(value: unknown): string[] {
    const list = Array.isArray(value) ? value : [value];
    return list.slice(0, propertiesMax).map(textOf);
  }

  function messagesOf(given: unknown): Record<string, string[]> {
    if (given === undefined || given === null) return { error: [supportText] };
    if (given instanceof Error) return { error: [textOf(given.message)] };
    if (typeof given !== 'object' || Array.isArray(given)) return { error: listOf(given) };
    const entries = Object.entries(given).slice(0, propertiesMax);
    return Object.fromEntries(entries.map(([name, value]) => [textOf(name), listOf(value)]));
  }

  const kinds = {
    BadRequestError: [400, 'Bad Request'],
    InvalidReactorConfigurationError: [400, 'Invalid Reactor Configuration'],
    AuthenticationError: [401, 'Authentication Failed'],
    InvalidPaymentMethodError: [402, 'Invalid Payment Method'],
    AuthorizationError: [403, 'Forbidden'],
    InvalidReactorFormulaError: [422, 'Invalid Reactor Formula'],
    RateLimitError: [429, 'Rate Limit Exceeded'],
    ReactorRuntimeError: [500, 'Reactor Runtime Error'],
    ServiceUnavailableError: [503, 'Service Unavailable'],
  } as const;

  const classes: Record<string, unknown> = {};
  for (const [name, [status, detail]] of Object.entries(kinds)) {
    const made = {
      [name]: class extends Error {
        readonly status: number;
        readonly data: unknown;

        constructor(given?: unknown) {
          super(detail);
          this.name = name;
          this.status = status;
          const errors = messagesOf(given);
          this.data = { status, detail, errors };
          reports.set(this, { name, errors });
        }
      },
    };
    classes[name] = made[name];
  }

  classes['CustomHttpResponseError'] = class CustomHttpResponseError extends Error {
    readonly status: unknown;
    readonly headers: unknown;
    readonly body: unknown;

    constructor(given: { status?: unknown; headers?: unknown; body?: unknown } = {}) {
      super('Custom HTTP Response');
      this.name = 'CustomHttpResponseError';
      const { status, headers, body } = given ?? {};
      Object.assign(this, { status, headers, body });
      const response = { status, headers: headers ?? {}, body };
      reports.set(this, { name: 'CustomHttpResponseError', errors: {}, response });
    }
  };

  /** Runs the tenant's code: a thrown object may have getters. */
  function report(thrown: unknown): ReportedError {
    try {
      const known =
        typeof thrown === 'object' && thrown !== null ? getReport(reports, thrown) : undefined;
      if (known !== undefined) return known;
      if (!(thrown instanceof Error)) return { name: 'other', errors: { error: [textOf(thrown)] } };
      const { name, message } = thrown;
      return { name: 'other', errors: { error: [`${textOf(name)}: ${textOf(message)}`] } };
    } catch {
      return { name: 'other', errors: { error: ['a value was thrown that cannot be read'] } };
    }
  }

  return { classes, report };
}

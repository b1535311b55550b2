/** The operator's log: one JSON line per event, holding only fields that are on the list below. */
import { pino } from 'pino';

/** Everything a line may hold. None of it comes out of a body, a query or a path's parameters. */
export interface LogFields {
  readonly method?: string;
  /** The pattern, such as `/tokens/:id`: a token's id may be derived from its value. */
  readonly route?: string;
  readonly status?: number;
  readonly duration_ms?: number;
  readonly trace_id?: string;
  readonly tenant_id?: string;
  readonly application_id?: string;
  readonly code?: string;
  /** Words of our own about what failed, with the places in our code that it passed. */
  readonly reason?: string;
  readonly address?: string;
  /** Name of a job that runs by the clock. */
  readonly job?: string;
  readonly count?: number;
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

const allowed: readonly (keyof LogFields)[] = [
  'method',
  'route',
  'status',
  'duration_ms',
  'trace_id',
  'tenant_id',
  'application_id',
  'code',
  'reason',
  'address',
  'job',
  'count',
];

/** Writes to standard output. The list is applied at run time too, for what the types did not stop. */
export function createLog(level: LogLevel): Log {
  const sink = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime });
  const only = (fields: LogFields = {}) =>
    Object.fromEntries(
      allowed.flatMap((name) => (fields[name] === undefined ? [] : [[name, fields[name]]])),
    );
  return {
    debug: (message, fields) => sink.debug(only(fields), message),
    info: (message, fields) => sink.info(only(fields), message),
    warn: (message, fields) => sink.warn(only(fields), message),
    error: (message, fields) => sink.error(only(fields), message),
  };
}

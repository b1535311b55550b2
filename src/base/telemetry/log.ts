/** The operator's log: one JSON line per event, with only the fields of the list below. */
import { pino } from 'pino';

/** All fields of a log line. None of them comes from a body, a query, or the parameters of a path. */
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
  /** Our own description of the failure, with the locations in our code that it passed. */
  readonly reason?: string;
  readonly address?: string;
  /** The name of a scheduled job. */
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

/** A log whose level can change while it is in use. */
export interface LeveledLog extends Log {
  setLevel(level: LogLevel): void;
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

/** Writes to standard output. The list is also applied at run time, for what the types cannot exclude. */
export function createLog(level: LogLevel): LeveledLog {
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
    setLevel: (next) => {
      sink.level = next;
    },
  };
}

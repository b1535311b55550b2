/** `console` and `logger`: lines of text for the log of the call. */
import type { Host } from './host.ts';
import type { LoggingPart } from './parts.ts';

export function logging(host: Host): LoggingPart {
  const { stringify } = JSON;
  const lengthMax = 8_000;

  function textOf(value: unknown): string {
    if (typeof value === 'string') return value;
    if (value instanceof Error) return value.stack ? `${value}\n${value.stack}` : String(value);
    try {
      return stringify(value) ?? String(value);
    } catch {
      return Object.prototype.toString.call(value);
    }
  }

  function write(level: string) {
    return (...values: unknown[]) => {
      const text = values.map(textOf).join(' ');
      host.ask(`log:${level}`, text.slice(0, lengthMax));
    };
  }

  const logger = {
    debug: write('debug'),
    trace: write('debug'),
    info: write('info'),
    log: write('info'),
    warn: write('warn'),
    error: write('error'),
  };
  return {
    console: { ...logger, dir: logger.log, table: logger.log },
    logger: { ...logger, fatal: logger.error },
  };
}

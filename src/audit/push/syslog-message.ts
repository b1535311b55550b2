/** An entry as a message of syslog (RFC 5424), framed by its length (RFC 5425, and octet counting of RFC 6587). */
import type { ChainedEntry } from '../../store/log-chain/entries.ts';
import type { PushedEntry } from './push.ts';

/** RFC 5424, table 1: log audit. */
const facility = 13;

/** RFC 5424, table 2. */
const severities = { alert: 1, warning: 4, informational: 6 } as const;

function severityOf({ entity_type, result }: ChainedEntry): number {
  if (entity_type === 'alert') return severities.alert;
  return result === 'success' ? severities.informational : severities.warning;
}

/** RFC 5424: names consist of printable ASCII, and of at most so many characters. */
const lengthsMax = { host: 255, process: 128, message: 32 } as const;
const nameOf = (text: string, lengthMax: number) =>
  text.replace(/[^!-~]/g, '_').slice(0, lengthMax) || '-';

export interface SyslogSender {
  readonly host: string;
  readonly process: string;
}

/**
 * The message is the line of an export as ASCII, because a message in UTF-8 has to begin with a byte order mark, which
 * parsers of JSON refuse.
 */
export function frameOf({ entry, line }: PushedEntry, sender: SyslogSender): string {
  const head = [
    `<${facility * 8 + severityOf(entry)}>1`,
    new Date(entry.created_at).toISOString(),
    nameOf(sender.host, lengthsMax.host),
    'strongroom',
    nameOf(sender.process, lengthsMax.process),
    nameOf(`${entry.entity_type}.${entry.operation}`, lengthsMax.message),
    '-',
  ].join(' ');
  const message = `${head} ${asciiOf(line.trimEnd())}`;
  return `${message.length} ${message}`;
}

/** JSON may write any character as an escape, outside ASCII also only within strings. */
function asciiOf(json: string): string {
  return json.replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

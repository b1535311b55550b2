/** What the operator reads of a failure: one line that never holds a value, and never a stack. */
import { reasonOf, VaultError } from '../../lib/errors.ts';

/** Failures whose message is written for the operator. That of another may hold a value. */
const operatorErrors = new Set([
  'AnswerError',
  'BackupError',
  'ConfigError',
  'DamagedFileError',
  'DatabaseTlsError',
  'DirectoryLockedError',
  'DowngradeError',
  'ForeignRootKeyError',
  'NoDatabaseError',
  'OperatorFileError',
  'RootKeyError',
  'SqliteError',
  'UsageError',
]);

/** PostgreSQL's about connecting, signing in, resources and the machine, which name no value. */
const databaseErrors = /^(?:08|28|3D|53|57|58)[0-9A-Z]{3}$/;

export function explain(error: unknown): string {
  if (error instanceof VaultError) return explainAttributes(error) ?? error.public;
  // Of a name with several addresses; each of them failed.
  if (error instanceof AggregateError && error.errors.length > 0) return explain(error.errors[0]);
  if (!(error instanceof Error)) return reasonOf(error);
  // What the operating system refuses, it says of a file or an address.
  if (operatorErrors.has(error.name) || 'syscall' in error) return error.message;
  const code = 'code' in error ? String(error.code) : '';
  return databaseErrors.test(code) ? error.message : `${code} ${reasonOf(error)}`.trim();
}

function explainAttributes({ errors }: VaultError): string | undefined {
  if (errors === undefined) return undefined;
  return Object.entries(errors)
    .map(([name, messages]) => `${name} ${messages.join(', ')}`)
    .join('; ');
}

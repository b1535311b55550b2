/** The message of a failure for the operator: one line, without values and without a stack. */
import { reasonOf, VaultError } from '../../base/errors.ts';

/** Failures whose message is written for the operator. That of another may hold a value. */
const operatorErrors = new Set([
  'ResponseError',
  'BackupError',
  'BootstrapKeyError',
  'ConfigError',
  'DamagedFileError',
  'DatabaseServerError',
  'DatabaseTlsError',
  'DirectoryLockedError',
  'DistributionError',
  'DowngradeError',
  'ForeignRootKeyError',
  'GivenFileError',
  'IsolationError',
  'MovedVaultError',
  'NoDatabaseError',
  'NoLogError',
  'NoPrimaryError',
  'NoResponseError',
  'OperatorFileError',
  'RestoreError',
  'RootKeyError',
  'RotationError',
  'SqliteError',
  'UnfinishedRestoreError',
  'UsageError',
]);

/** PostgreSQL's about connecting, signing in, resources and the machine, which name no value. */
const databaseErrors = /^(?:08|53|57|58)[0-9A-Z]{3}$/;

/** Those of the address: no such user, a wrong password, no such database. */
const addressErrors = /^(?:28|3D)[0-9A-Z]{3}$/;

/** PostgreSQL's code for what the user may not do. Its messages name tables and schemas, and no value. */
const insufficientPrivilege = '42501';

/** Node's code for what SQLite refuses. Its messages name tables and columns, and no value. */
const sqliteError = 'ERR_SQLITE_ERROR';

const takenAdvice = '; stop what listens there, or set STRONGROOM_PORT to a free port';

/** A vault that cannot be reached has an error of its own, so what remains is the database. */
const unreached = 'the database cannot be reached';
const databaseAdvice = 'check STRONGROOM_DATABASE_URL, and that PostgreSQL runs there';

export function explain(error: unknown): string {
  if (error instanceof VaultError) return explainAttributes(error) ?? publicText(error);
  // Of a name with several addresses; each of them failed.
  if (error instanceof AggregateError && error.errors.length > 0) return explain(error.errors[0]);
  if (!(error instanceof Error)) return reasonOf(error);
  if ('code' in error && error.code === 'EADDRINUSE') return `${error.message}${takenAdvice}`;
  if ('syscall' in error && /^(?:connect|getaddrinfo)$/.test(String(error.syscall))) {
    return `${unreached}: ${error.message}; ${databaseAdvice}`;
  }
  // What the operating system refuses, it says of a file or an address.
  if (operatorErrors.has(error.name) || 'syscall' in error) return error.message;
  const code = 'code' in error ? String(error.code) : '';
  if (addressErrors.test(code)) return `${error.message}; check STRONGROOM_DATABASE_URL`;
  if (code === insufficientPrivilege) {
    return `${error.message}; grant that right to the user of the database URL`;
  }
  const isOfDatabase = code === sqliteError || databaseErrors.test(code);
  return isOfDatabase ? error.message : `${code} ${reasonOf(error)}`.trim();
}

/** For a text that goes on after the message, which may be a whole sentence. */
export const withoutStop = (message: string): string => message.replace(/\.$/, '');

/** Without the id, which may be derived from a value. */
function publicText({ altered, public: text }: VaultError): string {
  if (altered === undefined) return text;
  const names = '"strongroom logs verify --state" names it';
  return `${text} A row was altered outside the vault; ${names}.`;
}

function explainAttributes({ errors }: VaultError): string | undefined {
  if (errors === undefined) return undefined;
  return Object.entries(errors)
    .map(([name, messages]) => `${name} ${messages.join(', ')}`)
    .join('; ');
}

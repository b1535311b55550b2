/** A connection that is refused because the server cannot be trusted, in words for the operator. */
import { systemCodeOf } from '../../base/errors.ts';

/** The database was not reached over verified TLS. */
export class DatabaseTlsError extends Error {
  override readonly name = 'DatabaseTlsError';
}

/** The error codes of Node and OpenSSL for certificates that fail verification. */
const certificateCode = /^(?:ERR_TLS_|ERR_SSL_|UNABLE_TO_|CERT_|DEPTH_ZERO_|SELF_SIGNED_)/;
const withoutTls = /does not support SSL/;

/** The error, or one that says what to do where TLS is what failed. */
export function explainTls(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const code = systemCodeOf(error) ?? '';
  const lacksTls = withoutTls.test(error.message);
  if (!lacksTls && !certificateCode.test(code)) return error;
  const problem = lacksTls
    ? 'a server that does not offer TLS'
    : `a server whose certificate cannot be verified (${code})`;
  return new DatabaseTlsError(
    `STRONGROOM_DATABASE_URL names ${problem}. Give it a certificate for its name, and name the ` +
      'certificate authority with sslrootcert=FILE if it is your own, or set STRONGROOM_DATABASE_TLS=off ' +
      'if something else protects the connection.',
    { cause: error },
  );
}

/** The certificate and key under which the vault serves HTTPS. */
import { checkTlsPair } from '../../keys/tls-pair.ts';
import { wrongVariable } from './problems.ts';
import { readText } from './values.ts';
import type { ReadVariable } from './variables.ts';

export interface TlsPair {
  readonly cert: string;
  readonly key: string;
}

const variables = { cert: 'STRONGROOM_TLS_CERT', key: 'STRONGROOM_TLS_KEY' } as const;

/** @throws ConfigError when one is missing, unreadable, in the place of the other, or not its counterpart. */
export function readTls(read: ReadVariable): TlsPair | undefined {
  const [certFile, keyFile] = [read('TLS_CERT'), read('TLS_KEY')];
  if (certFile === undefined && keyFile === undefined) return undefined;
  if (certFile === undefined || keyFile === undefined) {
    throw wrongVariable(variables.cert, `and ${variables.key} must be given together`);
  }
  const pair = { cert: readText(variables.cert, certFile), key: readText(variables.key, keyFile) };
  const flaw = checkTlsPair(pair);
  if (flaw === undefined) return pair;
  throw wrongVariable(variables[flaw.part], flaw.problem);
}

/** `strongroom logs verify`: proves, offline, that the audit log is as it was written. */
import { readFileSync } from 'node:fs';
import { readPublicKey } from '../crypto/signing.ts';
import { isObject } from '../lib/json.ts';
import { countEntries, readLogs } from '../vault/logs/read.ts';
import type { LogRecord } from '../vault/logs/records.ts';
import { openCheckpoint, type Signed } from '../vault/logs/statements.ts';
import { LogVerifier } from '../vault/logs/verify.ts';
import { type Command, type Flags, jsonFlag, repeated, UsageError } from './command.ts';
import { readLogFile } from './log-file.ts';
import { openLog, optionalText, placeFlags } from './log-place.ts';
import { describeVerification } from './logs-report.ts';
import { startProgress } from './progress.ts';

/** The exit code that tells a log that is not intact from one that could not be read. */
const notIntact = 3;

export const logsVerify: Command = {
  summary:
    'Verify the audit log offline, in a database or an exported file. Exit code 0: it is intact, ' +
    '3: it is not, 1: it could not be read.',
  flags: {
    ...placeFlags,
    file: { kind: 'string', meaning: 'an exported log instead of a database; - is standard input' },
    checkpoint: { kind: 'string', meaning: 'a file with an answer of GET /logs/checkpoint' },
    'public-key': {
      kind: 'string',
      repeated: true,
      meaning: 'a key that may sign: base64, or a file with PEM or base64',
    },
    json: jsonFlag,
  },
  run: async (flags) => {
    const kept = readKept(flags);
    const given = repeated(flags, 'public-key').map(readKey);
    const trustedKeys = given.length > 0 ? given : (kept?.keys ?? []);
    const verifier = new LogVerifier({ trustedKeys, kept: kept ? [kept.signed] : [] });
    const file = optionalText(flags, 'file');
    if (file === undefined) await verifyDatabase(verifier, flags);
    else await verifyFile(verifier, file, flags);
    const verification = verifier.finish();
    process.stdout.write(
      flags['json'] === true
        ? `${JSON.stringify(verification)}\n`
        : describeVerification(verification, trustedKeys),
    );
    return verification.findings.length === 0 ? 0 : notIntact;
  },
};

async function verifyDatabase(verifier: LogVerifier, flags: Flags): Promise<void> {
  const { store, tenants } = await openLog(flags);
  try {
    await walk(verifier, readLogs(store, tenants), await countEntries(store, tenants));
  } finally {
    await store.close();
  }
}

async function verifyFile(verifier: LogVerifier, file: string, flags: Flags): Promise<void> {
  for (const name of ['database', 'tenant']) {
    if (flags[name] !== undefined) throw new UsageError(`--${name} does not go with --file`);
  }
  await walk(verifier, readLogFile(file), undefined);
}

async function walk(
  verifier: LogVerifier,
  records: AsyncIterable<LogRecord>,
  total: number | undefined,
): Promise<void> {
  const progress = startProgress('entries', total);
  for await (const record of records) {
    verifier.take(record);
    progress.report(verifier.entries);
  }
  progress.finish();
}

/** The checkpoint that the auditor kept, and the keys that were published with it. */
function readKept(flags: Flags): { signed: Signed; keys: string[] } | undefined {
  const file = optionalText(flags, 'checkpoint');
  if (file === undefined) return undefined;
  const parsed = parseJson(readFileSync(file, 'utf8'));
  const { statement, signature, public_key, public_keys } = isObject(parsed) ? parsed : {};
  const texts = [statement, signature, public_key].map((part) => String(part ?? ''));
  const [statementText = '', signatureText = '', publicKey = ''] = texts;
  const signed = { statement: statementText, signature: signatureText, public_key: publicKey };
  const checkpoint = openCheckpoint(signed);
  if (!checkpoint) throw new UsageError('--checkpoint names a file that holds no checkpoint');
  const tenant = optionalText(flags, 'tenant');
  if (tenant !== undefined && tenant.toLowerCase() !== checkpoint.tenant_id) {
    throw new UsageError('--checkpoint is of another tenant than --tenant');
  }
  const others = Array.isArray(public_keys) ? public_keys.map(String) : [];
  return { signed, keys: [...new Set([publicKey, ...others])] };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function readKey(given: string): string {
  const key = readPublicKey(given) ?? readPublicKey(readFileSync(given, 'utf8'));
  if (key !== undefined) return key;
  throw new UsageError('--public-key must be an Ed25519 key, or a file that holds one');
}

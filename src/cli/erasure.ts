/** `strongroom erasure verify`: checks, offline, a receipt that data was erased. */
import { isDeepStrictEqual } from 'node:util';
import type { OpenedCheckpoint } from '../audit/checkpoint-trail.ts';
import { viewErasure } from '../audit/erasure.ts';
import { signsFor } from '../audit/key-chain.ts';
import { type ErasureReceipt, openCheckpoint, openErasure } from '../audit/statements.ts';
import { formatTimestamp } from '../base/dates.ts';
import { VaultError } from '../base/errors.ts';
import { isObject, type JsonObject } from '../base/json.ts';
import { publicKeyPem } from '../keys/signing.ts';
import { type Command, jsonFlag, print, repeated, required } from './terminal/command.ts';
import { readGivenFile, readGivenStream } from './terminal/given-text.ts';
import { publicKeyFlag, readTrustedKey } from './terminal/public-key.ts';
import type { Terminal } from './terminal/terminal.ts';
import { visible } from './terminal/visible.ts';

/** The exit code for a receipt that is not genuine, as opposed to one that could not be read. */
const notGenuine = 3;

export const erasureVerify: Command = {
  summary:
    'Verify, offline, a receipt that a token or a tenant was erased. Exit code 0: it is genuine, 3: it is not, ' +
    '1: it could not be read.',
  operand: {
    name: 'FILE',
    meaning: 'a response of GET /tokens/{id}/erasure, or the output of tenant delete --json',
  },
  flags: {
    'public-key': {
      ...publicKeyFlag,
      meaning: `${publicKeyFlag.meaning}; of several, the newest last: those before it are over`,
    },
    json: jsonFlag,
  },
  examples: ['receipt.json', 'receipt.json --public-key log-key.pem', 'receipt.json --json'],
  run: async (flags, terminal) => {
    const file = await readReceiptFile(terminal, required(flags, 'FILE'));
    const trusted = repeated(flags, 'public-key').map(readTrustedKey);
    const { receipt, flaw } = examine(file, trusted);
    const public_key = String(file['public_key'] ?? '');
    const isTrusted = trusted.length > 0 && flaw === undefined;
    print(terminal, flags, {
      json: {
        valid: flaw === undefined,
        flaw: flaw ?? null,
        public_key,
        trusted: isTrusted,
        receipt,
      },
      line:
        flaw !== undefined || receipt === null
          ? `The receipt is NOT genuine: ${flaw}.`
          : describe(receipt, isTrusted ? undefined : public_key),
    });
    return flaw === undefined ? 0 : notGenuine;
  },
};

/** @throws VaultError when the file is not a JSON object. */
async function readReceiptFile({ stdin }: Terminal, name: string): Promise<JsonObject> {
  const text = name === '-' ? await readGivenStream('standard input', stdin) : readGivenFile(name);
  const parsed = parsedJson(text);
  const receipt = isObject(parsed) && isObject(parsed['receipt']) ? parsed['receipt'] : parsed;
  if (isObject(receipt)) return receipt;
  throw new VaultError('malformed_request', {
    public: 'The file does not contain a receipt: it must be a JSON object.',
  });
}

function parsedJson(content: string): unknown {
  try {
    return JSON.parse(content);
  } catch {
    return undefined;
  }
}

interface Examined {
  readonly receipt: ErasureReceipt | null;
  readonly flaw?: string;
}

function examine(file: JsonObject, trusted: readonly string[]): Examined {
  const { statement, signature, public_key } = file;
  const receipt = openErasure({
    statement: String(statement ?? ''),
    signature: String(signature ?? ''),
    public_key: String(public_key ?? ''),
  });
  if (receipt === undefined) {
    return { receipt: null, flaw: 'its statement is not one about an erasure that its key signed' };
  }
  const key = String(public_key);
  const known = trusted.length > 0 ? trusted : [key];
  if (!signsFor(known, introductionsIn(receipt, file), { key, at: receipt.issued_at })) {
    const flaw = 'it is signed by a key that is not trusted, or had been replaced';
    return { receipt, flaw: known.length > 1 ? `${flaw} by the last one of those given` : flaw };
  }
  // A reader may store it as the key of the vault.
  const shown = { ...viewErasure(receipt), public_key_pem: publicKeyPem(key) };
  const altered = Object.entries(shown).find(
    ([name, value]) => name in file && !isDeepStrictEqual(file[name], value),
  );
  if (altered) return { receipt, flaw: `its ${altered[0]} differs from what was signed` };
  return { receipt };
}

/** The checkpoints that come with the receipt, in which each key introduces the next one. */
function introductionsIn(
  { tenant_id }: ErasureReceipt,
  { introductions }: JsonObject,
): readonly OpenedCheckpoint[] {
  const given = Array.isArray(introductions) ? introductions.filter(isObject) : [];
  return given.flatMap(({ statement, signature, public_key }) => {
    const signed = {
      statement: String(statement),
      signature: String(signature),
      public_key: String(public_key),
    };
    const checkpoint = openCheckpoint(signed);
    return checkpoint?.tenant_id === tenant_id ? [{ signed, checkpoint }] : [];
  });
}

function describe(receipt: ErasureReceipt, untrustedKey: string | undefined): string {
  const { entity, id, operation, erased_at, log_entry, keys, root_key } = receipt;
  const verb = operation === 'expire' ? 'expired' : 'was deleted';
  const living = keys.filter(({ state }) => state !== 'destroyed');
  return [
    'The receipt is genuine.',
    `  The ${entity} ${visible(id)} ${verb}, and was erased at ${formatTimestamp(erased_at)}.`,
    `  Entry ${log_entry.seq} of the log stream ${log_entry.stream_id} says so.`,
    living.length === 0
      ? '  The keys that sealed it are destroyed.'
      : `  When the receipt was issued, the vault still had the keys that sealed it: ${living
          .map(({ purpose, version }) => `${purpose} ${version ?? 'of an unknown version'}`)
          .join(', ')}.`,
    ...(root_key
      ? [`  In backups, the root key ${root_key.key_id} (${root_key.source}) wraps these keys.`]
      : []),
    ...(untrustedKey === undefined
      ? []
      : [
          `  signed by ${untrustedKey} (no key was given: compare it with the one you have stored)`,
        ]),
  ].join('\n');
}

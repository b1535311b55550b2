/** The file that holds the management key of the first start: read where it exists, written where it does not. */
import { closeSync, existsSync, fstatSync, openSync, readSync, rmSync } from 'node:fs';
import { systemCodeOf } from '../../base/errors.ts';
import { createDurably, exposedMode } from '../../base/private-file.ts';
import type { Random } from '../../base/random.ts';
import { apiKeyPlausible, isOperatorKey, newApiKey, operatorKeyForm } from '../../keys/api-key.ts';
import type { TenantType } from '../../rules/tenant.ts';
import { apiKeyEnvOf } from '../applications/api-key-row.ts';

const fileBytesMax = 1024;

/** The file cannot be used. The message names the file, and never what it holds. */
export class BootstrapKeyError extends Error {
  override readonly name = 'BootstrapKeyError';

  constructor(file: string, problem: string, options?: ErrorOptions) {
    super(`STRONGROOM_BOOTSTRAP_KEY_FILE (${file}) ${problem}`, options);
  }
}

export interface BootstrapKey {
  readonly text: string;
  /** Whether this start wrote the file. */
  readonly created: boolean;
}

/**
 * The key in the file. Where there is none, a new key is on the disk before this returns: a start that is cut off
 * afterwards finds it, and uses it.
 * @throws BootstrapKeyError when the file cannot be used or written.
 */
export function takeBootstrapKey(file: string, type: TenantType, random: Random): BootstrapKey {
  const env = apiKeyEnvOf(type);
  // A file that exists may be in a place where nothing can be written, such as the mount of a Secret.
  const created =
    !existsSync(file) &&
    attempt(file, 'cannot be written', () =>
      createDurably(file, `${newApiKey({ env, kind: 'mgt', random })}\n`, random),
    );
  return { text: parseKey(file, readPrivate(file), `key_${env}_mgt_`), created };
}

/** Removes a file whose key opens nothing, because another server was faster. */
export function dropBootstrapKey(file: string): void {
  attempt(file, 'cannot be removed', () => rmSync(file, { force: true }));
}

function parseKey(file: string, content: string, ownPrefix: string): string {
  const text = content.trim();
  const isOwn = text.startsWith(ownPrefix) && apiKeyPlausible(text);
  if (isOwn || isOperatorKey(text)) return text;
  throw new BootstrapKeyError(
    file,
    `has no management key for a tenant of this type. A key that you choose ${operatorKeyForm}`,
  );
}

function readPrivate(file: string): string {
  const descriptor = attempt(file, 'cannot be read', () => openSync(file, 'r'));
  try {
    const mode = exposedMode(fstatSync(descriptor));
    if (mode !== undefined) {
      throw new BootstrapKeyError(
        file,
        `has mode ${mode}: users other than its owner have access; set it to 0600 or 0400`,
      );
    }
    const content = Buffer.alloc(fileBytesMax);
    return attempt(file, 'cannot be read', () =>
      content.toString('latin1', 0, readSync(descriptor, content)),
    );
  } finally {
    closeSync(descriptor);
  }
}

/** Runs a file operation and names its failure, with the code of the system as the reason. */
function attempt<T>(file: string, failure: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    const reason = `${failure}: ${systemCodeOf(error) ?? 'unknown'}`;
    throw new BootstrapKeyError(file, reason, { cause: error });
  }
}

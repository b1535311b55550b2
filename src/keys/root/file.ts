/** The root key in a file: its creation, its replacement, and why a file is refused. */
import { createSecretKey, type KeyObject } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fstatSync,
  openSync,
  readSync,
  realpathSync,
  statSync,
} from 'node:fs';
import { systemCodeOf } from '../../base/errors.ts';
import { createDurably, exposedMode, replaceDurably } from '../../base/private-file.ts';
import type { Random } from '../../base/random.ts';
import { aeadKeyBytes } from '../aead.ts';
import { localKeyId, localRootKey, parseRootKey } from './local-key.ts';
import { RootKeyError, type RootKeySource } from './root-key.ts';

const variable = 'ROOT_KEY_FILE';
const fileBytesMax = 1024;

/** The key that wraps, and during a rotation the one before it. */
const linesMax = 2;

export const fileSource: RootKeySource = {
  name: 'file',
  variables: [variable],
  isConfigured: (read) => read(variable) !== undefined,
  open: async ({ file, createIfMissing, random }) => {
    const missing = !existsSync(file);
    if (missing && !createIfMissing) throw new RootKeyError(missingText(file));
    const created = missing && createFile(file, random);
    return localRootKey({
      source: 'file',
      origin: originOf(file),
      created,
      random,
      load: () => readRootKeys(file),
    });
  },
  renewal: {
    begin: async ({ file, random }, inUse) => {
      if (!existsSync(file)) {
        createFile(file, random);
        return;
      }
      const [first, second] = readRootKeys(file);
      if (first === undefined || second !== undefined || localKeyId(first) !== inUse) return;
      replaceRootKeys(file, [createSecretKey(random(aeadKeyBytes)), first], random);
    },
    end: async ({ file, random }, inUse) => {
      const [first, second] = readRootKeys(file);
      // An operator may have put the next key before the present one.
      if (first && second && localKeyId(first) === inUse) replaceRootKeys(file, [first], random);
    },
  },
};

function originOf(file: string): string {
  return `file ${file}`;
}

/**
 * The keys of the file, the one that wraps first.
 * @throws RootKeyError when the file cannot be used.
 */
function readRootKeys(file: string): readonly KeyObject[] {
  const lines = readFile(file)
    .trim()
    .split('\n')
    .slice(0, linesMax + 1);
  if (lines.length > linesMax) {
    throw new RootKeyError(`the root key (file ${file}) has more than ${linesMax} lines`);
  }
  const keys = lines.map((line) => parseRootKey(line, originOf(file)));
  const [first, second] = keys;
  if (first && second?.equals(first)) {
    throw new RootKeyError(`the root key (file ${file}) has the same key twice`);
  }
  return keys;
}

/**
 * Replaces the content of the file in one step: a crash leaves the old content or the new one, whole. Owner and mode
 * stay, so that a server of another user can still read it.
 * @param keys the one that wraps first.
 */
function replaceRootKeys(file: string, keys: readonly KeyObject[], random: Random): void {
  const place = attempt(file, 'cannot be replaced', () => realpathSync(file));
  const text = keys.map((key) => `${key.export().toString('base64')}\n`).join('');
  attempt(file, 'cannot be replaced', () => replaceDurably(place, text, random, statSync(place)));
}

function missingText(file: string): string {
  return (
    `the root key (file ${file}) is missing, and a new one could not open the data that is ` +
    'already stored; restore the file, or set STRONGROOM_ROOT_KEY'
  );
}

function readFile(file: string): string {
  const descriptor = attempt(file, 'cannot be opened', () => openSync(file, 'r'));
  try {
    const status = fstatSync(descriptor);
    if (!status.isFile()) throw new RootKeyError(`the root key (file ${file}) is not a file`);
    const mode = exposedMode(status);
    if (mode !== undefined) {
      throw new RootKeyError(
        `the root key (file ${file}) has mode ${mode}: users other than its owner have access; ` +
          'set it to 0600 or 0400',
      );
    }
    const content = Buffer.alloc(fileBytesMax);
    const text = content.toString('latin1', 0, readSync(descriptor, content));
    content.fill(0);
    return text;
  } finally {
    closeSync(descriptor);
  }
}

/** Creates the file unless it exists already, and returns whether it did. */
function createFile(file: string, random: Random): boolean {
  const text = `${random(aeadKeyBytes).toString('base64')}\n`;
  return attempt(file, 'cannot be created', () => createDurably(file, text, random));
}

/** Runs a file operation and names its failure, with the code of the system as the reason. */
function attempt<T>(file: string, failure: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    const reason = `the root key (file ${file}) ${failure}: ${systemCodeOf(error) ?? 'unknown'}`;
    throw new RootKeyError(reason, { cause: error });
  }
}

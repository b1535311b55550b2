/** The root key: where it comes from, and the creation of the file that holds it. */
import { createSecretKey, type KeyObject } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fchmodSync,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  readSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import type { Random } from '../base/random.ts';
import { RootKeyError } from './root/root-key.ts';

export interface LocalRootKey {
  /** Prints and serializes as nothing. */
  readonly key: KeyObject;
  /** `environment`, or `file <path>`. */
  readonly origin: string;
  /** True when it did not exist before this call. */
  readonly created: boolean;
}

export interface LoadSettings {
  /** Value of STRONGROOM_ROOT_KEY; it takes precedence over the file. */
  readonly text?: string | undefined;
  readonly file: string;
  /** True only over an empty store: a new root key cannot open old keyrings. */
  readonly createIfMissing: boolean;
  readonly random: Random;
}

const rootKeyBytes = 32;

/** 32 bytes in canonical base64. */
const form = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/;
const fileBytesMax = 1024;

interface LocalSource {
  applies(settings: LoadSettings): boolean;
  load(settings: LoadSettings): LocalRootKey;
}

/** In order of precedence. The file is always checked last. */
const sources: readonly LocalSource[] = [
  {
    applies: ({ text }) => text !== undefined,
    load: ({ text = '' }) => {
      const origin = 'environment';
      return { key: parseRootKey(text, origin), origin, created: false };
    },
  },
  {
    applies: () => true,
    load: ({ file, createIfMissing, random }) => {
      const missing = !existsSync(file);
      if (missing && !createIfMissing) throw new RootKeyError(missingText(file));
      const created = missing && createFile(file, random);
      const origin = `file ${file}`;
      return { key: parseRootKey(readFile(file), origin), origin, created };
    },
  },
];

/** @throws RootKeyError when there is no usable root key; nothing has changed then. */
export function loadRootKey(settings: LoadSettings): LocalRootKey {
  const source = sources.find(({ applies }) => applies(settings));
  if (source === undefined) throw new RootKeyError('no root key is configured');
  return source.load(settings);
}

function parseRootKey(text: string, origin: string): KeyObject {
  if (!form.test(text.trim())) {
    throw new RootKeyError(`the root key (${origin}) is not the base64 of ${rootKeyBytes} bytes`);
  }
  return createSecretKey(text.trim(), 'base64');
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
    if ((status.mode & 0o077) !== 0) {
      const mode = (status.mode & 0o777).toString(8).padStart(4, '0');
      throw new RootKeyError(
        `the root key (file ${file}) has mode ${mode}: users other than its owner have access; ` +
          'set it to 0600 or 0400',
      );
    }
    const content = Buffer.alloc(fileBytesMax);
    return content.toString('latin1', 0, readSync(descriptor, content));
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Creates the file unless it exists already, and returns whether it did. The key is written to another file first and
 * then linked into place: a link never overwrites, and a crash leaves either no file or a complete one. If two
 * processes create it, one wins, and both read the winner's key.
 */
function createFile(file: string, random: Random): boolean {
  const draft = `${file}.${random(8).toString('hex')}.draft`;
  const text = `${random(rootKeyBytes).toString('base64')}\n`;
  return attempt(file, 'cannot be created', () => {
    try {
      writeDurably(draft, text);
      return linkUnlessPresent(draft, file);
    } finally {
      rmSync(draft, { force: true });
      // The process that lost also syncs: it must not seal under a key whose file could still vanish.
      syncDirectory(dirname(file));
    }
  });
}

function linkUnlessPresent(draft: string, file: string): boolean {
  try {
    linkSync(draft, file);
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  }
}

function writeDurably(file: string, text: string): void {
  const descriptor = openSync(file, 'wx', 0o600);
  try {
    // The umask of the process may have removed even the owner's permissions.
    fchmodSync(descriptor, 0o600);
    writeSync(descriptor, text);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function syncDirectory(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Runs a file operation and names its failure, with the code of the system as the reason. */
function attempt<T>(file: string, failure: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    const reason = `the root key (file ${file}) ${failure}: ${codeOf(error)}`;
    throw new RootKeyError(reason, { cause: error });
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}

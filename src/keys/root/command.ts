/** The root key as the output of a command, which reads it from a TPM, a credential store, or a cloud. */
import { spawn } from 'node:child_process';
import { second } from '../../base/clock.ts';
import { systemCodeOf } from '../../base/errors.ts';
import { localRootKey, parseRootKey } from './local-key.ts';
import { RootKeyError, type RootKeySettings, type RootKeySource } from './root-key.ts';

const variable = 'ROOT_KEY_COMMAND';
const origin = 'STRONGROOM_ROOT_KEY_COMMAND';
const outputBytesMax = 1024;
const commandMsMax = 20 * second;

export const commandSource: RootKeySource = {
  name: 'command',
  variables: [variable],
  isConfigured: (read) => read(variable) !== undefined,
  open: async ({ read, random, environment }) => {
    const text = read(variable);
    if (text === undefined)
      throw new RootKeyError(`STRONGROOM_ROOT_KEY_SOURCE=command needs ${origin}`);
    const keys = [parseRootKey(await outputOf(wordsOf(text), environment), origin)];
    return localRootKey({ source: 'command', origin, random, load: () => keys });
  },
};

/** Characters that mean something to a shell. No shell reads the command, so they would not. */
const shellCharacters = /["'`$\\|&;<>()*?[\]{}~#!]/;

/**
 * The words of the command: separated by spaces, or a JSON array of them.
 * @throws RootKeyError, without the text, which may hold a secret.
 */
function wordsOf(text: string): readonly [string, ...string[]] {
  const words = text.trim().startsWith('[') ? jsonWords(text) : text.trim().split(/\s+/);
  const [program, ...others] = words ?? [];
  if (program === undefined || program === '') {
    throw new RootKeyError(`${origin} must be words, or a JSON array of words`);
  }
  if (!text.trim().startsWith('[') && shellCharacters.test(text)) {
    throw new RootKeyError(
      `${origin} is not read by a shell: write words with special characters as a JSON array, such as ["sh","-c","…"]`,
    );
  }
  return [program, ...others];
}

function jsonWords(text: string): readonly string[] | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    const isWords = Array.isArray(parsed) && parsed.every((word) => typeof word === 'string');
    return isWords ? parsed : undefined;
  } catch {
    return undefined;
  }
}

/**
 * What the command prints. Its standard error is discarded, because it may quote what the command read. The command
 * gets no variable of the vault, and has a process group of its own, all of which ends with the timeout.
 */
async function outputOf(
  [program, ...words]: readonly [string, ...string[]],
  env: RootKeySettings['environment'],
): Promise<string> {
  const child = spawn(program, words, {
    detached: true,
    env,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let flaw: string | undefined;
  const end = (reason: string) => {
    flaw ??= reason;
    child.stdout.destroy();
    if (child.pid === undefined) return;
    try {
      process.kill(-child.pid, 'SIGKILL');
    } catch {
      // All of it has ended already.
    }
  };
  const chunks: Buffer[] = [];
  let bytes = 0;
  child.stdout.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > outputBytesMax) end(`printed more than ${outputBytesMax} bytes`);
    else chunks.push(chunk);
  });
  const timer = setTimeout(() => end(`took longer than ${commandMsMax / second} s`), commandMsMax);
  try {
    const code = await new Promise<number | null>((resolve) => {
      child.on('error', (error) => {
        flaw ??= `cannot be run: ${systemCodeOf(error) ?? 'unknown'}`;
        resolve(null);
      });
      child.on('close', resolve);
    });
    if (flaw === undefined && code !== 0) flaw = `ended with exit code ${code ?? 'none'}`;
    if (flaw !== undefined) throw new RootKeyError(`${origin} ${flaw}`);
    return Buffer.concat(chunks).toString('latin1');
  } finally {
    clearTimeout(timer);
    for (const chunk of chunks) chunk.fill(0);
  }
}

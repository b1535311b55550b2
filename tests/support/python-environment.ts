/** A Python with the packages that tests need, made once for a checkout. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const packages = join(import.meta.dirname, 'python-packages.txt');
const installMsMax = 90_000;

/**
 * From the package index that pip is configured for; without one, tests that need the packages skip.
 * @returns the path of its program; or why there is none.
 */
export async function pythonEnvironment(
  cache: string,
): Promise<{ readonly python: string } | { readonly absence: string }> {
  try {
    const { stdout: version } = await run('python3', ['-VV']);
    const key = createHash('sha256').update(version).update(readFileSync(packages)).digest('hex');
    const directory = join(cache, `strongroom-python-${key.slice(0, 16)}`);
    const python = join(directory, 'bin', 'python3');
    if (!existsSync(python)) await install(cache, directory);
    return { python };
  } catch (error) {
    const { stderr = '', message } = error as Error & { readonly stderr?: string };
    return { absence: stderr.trim().split('\n').at(-1) || message };
  }
}

async function install(cache: string, directory: string): Promise<void> {
  mkdirSync(cache, { recursive: true });
  const unfinished = mkdtempSync(join(cache, 'strongroom-python-'));
  try {
    await run('python3', ['-m', 'venv', '--without-pip', unfinished]);
    const interpreter = ['--python', join(unfinished, 'bin', 'python3')];
    const flags =
      '--quiet --no-input --disable-pip-version-check --no-deps --no-compile --retries 1 --timeout 10';
    const pinned = ['--only-binary', ':all:', '--require-hashes', '--requirement', packages];
    const words = ['-m', 'pip', ...interpreter, 'install', ...flags.split(' '), ...pinned];
    await run('python3', words, { timeout: installMsMax });
    // Another run may have been faster.
    if (!existsSync(directory)) renameSync(unfinished, directory);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
}

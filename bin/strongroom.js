#!/usr/bin/env node
/** The published command. Plain JavaScript that old versions of Node can parse, to tell them so. */
import { dirname, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const majorMin = 24;

const here = dirname(fileURLToPath(import.meta.url));
// Node does not strip types below node_modules, so the published package brings compiled files.
const main = here.includes(`${sep}node_modules${sep}`)
  ? '../dist/cli/main.js'
  : '../src/cli/main.ts';

if (Number(process.versions.node.split('.')[0]) < majorMin) {
  process.stderr.write(`strongroom needs Node ${majorMin} or later; this is ${process.version}\n`);
  process.exitCode = 1;
} else {
  await import(main);
}

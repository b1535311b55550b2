#!/usr/bin/env node
/** The entry of the command line. */
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';

// Node would read and strip every file again at each start, which takes longer than all the rest.
// The cache lies in the installation, where only its owner writes. Threads take it from the variable.
const cache = join(import.meta.dirname, '../../node_modules/.cache/strongroom');
process.env['NODE_COMPILE_CACHE'] ??= cache;
enableCompileCache(process.env['NODE_COMPILE_CACHE']);

const { runCommand } = await import('./commands.ts');
process.exitCode = await runCommand(process.argv.slice(2));

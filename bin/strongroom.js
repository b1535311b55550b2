#!/usr/bin/env node
/** The command. Plain JavaScript that old versions of Node can parse, to start the installed one in their place. */
import module from 'node:module';
import { dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const majorMin = 24;

const here = dirname(fileURLToPath(import.meta.url));
// Node does not strip types below node_modules, so the published package brings compiled files.
const commands = here.includes(`${sep}node_modules${sep}`)
  ? '../dist/cli/commands.js'
  : '../src/cli/commands.ts';

// On this signal Node opens a debugger, through which all of the memory can be read. `npm start` turns it
// off before Node starts; where the command is run directly, this takes its place.
process.on('SIGUSR1', () => undefined);

if (Number(process.versions.node.split('.')[0]) < majorMin) {
  const { installedNode, runUnder } = await import('./older-node.js');
  const node = installedNode();
  const code = node && (await runUnder(node, fileURLToPath(import.meta.url)));
  if (code === undefined) {
    process.stderr.write(
      `strongroom needs Node ${majorMin} or later; this is ${process.version}\n`,
    );
  }
  process.exitCode = code ?? 1;
} else {
  // Node would read and strip every file again at each start, which takes longer than all the rest.
  // The cache lies in the installation, where only its owner writes. Threads take it from the variable.
  process.env.NODE_COMPILE_CACHE ??= join(here, '../node_modules/.cache/strongroom');
  module.enableCompileCache(process.env.NODE_COMPILE_CACHE);
  const { runCommand } = await import(commands);
  process.exitCode = await runCommand(process.argv.slice(2), process);
}

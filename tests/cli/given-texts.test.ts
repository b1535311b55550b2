/** What others made is neither read without a limit nor written to a terminal as it is, in no command. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { readManifest } from '../../src/cli/backup/manifest.ts';
import { shownTerminal } from '../../src/cli/terminal/shown-terminal.ts';
import type { Terminal, TerminalOutput } from '../../src/cli/terminal/terminal.ts';
import { runCommand } from '../support/process.ts';
import { committedPaths, readSource } from '../support/source.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/**
 * Files that read what the vault, its package, or the operating system wrote; what the demo sends itself; and the lines
 * of an export, each of which has a limit.
 */
const ownTexts: readonly string[] = [
  'src/cli/agent/run.ts',
  'src/cli/bulk/ledger.ts',
  'src/cli/demo-destination.ts',
  'src/cli/lifetime.ts',
  'src/cli/logs/file.ts',
  'src/cli/resources/description.ts',
  'src/cli/resources/profiles.ts',
];

test('no command reads a text without a limit', () => {
  const unlimited = /\breadFile(?:Sync)?\(|\.text\(\)|\.json\(\)|stream\/consumers|setEncoding\(/;
  const readers = committedPaths()
    .filter((path) => /^src\/cli\/.*\.ts$/.test(path))
    .filter((path) => unlimited.test(readSource(path).text));
  assert.deepEqual(readers, ownTexts);
});

test('a manifest that is too large is refused before it is read', (t) => {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'manifest.json');
  writeFileSync(file, '{}');
  truncateSync(file, 2 ** 40);
  assert.throws(() => readManifest(directory), /has 1099511627776 bytes\. A manifest has at most/);
});

function terminalOf(isTTY: boolean) {
  const written: string[] = [];
  const output = new Writable({
    write: (chunk, _, done) => {
      written.push(String(chunk));
      done();
    },
  }) as TerminalOutput;
  Object.assign(output, { isTTY });
  const terminal = { stdin: process.stdin, stdout: output, stderr: output, env: {} };
  return { written, terminal: shownTerminal({ ...terminal, exit: () => undefined } as Terminal) };
}

test('text steers no terminal, and what is piped keeps every byte that JSON may have', () => {
  const { written, terminal } = terminalOf(true);
  terminal.stdout.write('a\u001b[2J\rb\u009b8m\u202ec\n\td');
  terminal.stderr.write(Buffer.from('\r1 of 2\u001b[K'));
  assert.deepEqual(written, ['a\\u001b[2J\\u000db\\u009b8m\\u202ec\n\td', '\r1 of 2\u001b[K']);
  const piped = terminalOf(false);
  const line = `${JSON.stringify('\u007f\u009b\u202e\u001b')}\n`;
  piped.terminal.stdout.write(line);
  piped.terminal.stdout.write('a\u001b[2J');
  assert.deepEqual(piped.written, [line, 'a\\u001b[2J']);
});

test('a hostile vault steers no terminal, and no shell that completes its ids', async (t) => {
  const marker = join(temporaryDirectory(t), 'ran');
  const hostile = '\u001b[2J\u202e';
  const ids = [`$(touch ${marker})`, `\`touch ${marker}\``, `\${x[$(touch ${marker})]}`, 'app-1'];
  const server = createServer((request, response) => {
    const isBad = request.url?.includes('bad') === true;
    response.writeHead(isBad ? 400 : 200, { 'content-type': 'application/json' });
    const list = {
      pagination: { next: hostile },
      data: ids.map((id) => ({ id, name: hostile })),
      [hostile]: hostile,
    };
    const problem = { detail: hostile, errors: { [hostile]: [hostile] } };
    response.end(JSON.stringify(isBad ? problem : list));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const env = { STRONGROOM_URL: `http://127.0.0.1:${port}`, STRONGROOM_KEY: 'key_of_nothing' };
  for (const words of [['list'], ['get', 'x'], ['get', 'bad']]) {
    const { stdout, stderr } = await runCommand(['app', ...words], env);
    assert.match(stdout + stderr, /u001b\[2J/, 'it was written visibly');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
    assert.doesNotMatch(stdout + stderr, /[\x00-\x09\x0b-\x1f]|\u202e/, words.join(' '));
  }
  const completed = await runCommand(['completion', '--ids', 'app', 'bash'], env);
  assert.equal(completed.stdout, 'app-1\t\\u001b[2J\\u202e\n');
  const { stdout: script } = await runCommand(['completion', 'bash'], {});
  const raw = ids.map((id) => `'${id.replaceAll("'", '')}'`).join(' ');
  const ask = [
    `strongroom() { printf '%s\\tname\\n' ${raw}; }`,
    'COMP_WORDS=(strongroom app get ""); COMP_CWORD=3; _strongroom',
    `printf '%s\\n' "\${COMPREPLY[@]}"`,
  ].join('\n');
  const { stdout } = await promisify(execFile)('bash', ['-c', `${script}\n${ask}`]);
  assert.ok(stdout.includes('app-1'));
  await assert.rejects(promisify(execFile)('test', ['-e', marker]), 'nothing of it ran');
});

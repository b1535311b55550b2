/** What others made is neither read without a limit nor written to a terminal as it is, in no command. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmodSync, truncateSync, writeFileSync } from 'node:fs';
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

/** Files that open what the vault, its package, or the operating system wrote, or a device. */
const ownFiles: readonly string[] = [
  'src/cli/backup/manifest.ts',
  'src/cli/bulk/ledger.ts',
  'src/cli/lifetime.ts',
  'src/cli/terminal/given-text.ts',
];

test('every command opens a file that somebody named in the same way', () => {
  const openers = committedPaths()
    .filter((path) => /^src\/cli\/.*\.ts$/.test(path))
    .filter((path) => /\b(?:openSync|createReadStream)\(/.test(readSource(path).text));
  assert.deepEqual(openers, ownFiles);
});

/** In the place of the word FILE, or at the end. */
function withFile(words: readonly string[], file: string): readonly string[] {
  return words.includes('FILE')
    ? words.map((word) => (word === 'FILE' ? file : word))
    : [...words, file];
}

const isRoot = process.getuid?.() === 0;

test('a file that cannot be read is one line in words, by each command that reads one', async (t) => {
  const directory = temporaryDirectory(t);
  const [missing, empty, closed] = ['missing', 'empty', 'closed'].map((name) =>
    join(directory, name),
  );
  assert.ok(missing && empty && closed);
  writeFileSync(empty, '', { mode: 0o600 });
  writeFileSync(closed, 'text', { mode: 0o600 });
  chmodSync(closed, 0);
  const below = join(empty, 'below');
  const env = { STRONGROOM_KEY: 'key_test_pvt_x', STRONGROOM_URL: 'http://127.0.0.1:9' };
  const commands: readonly (readonly string[])[] = [
    ['erasure', 'verify'],
    ['erasure', 'verify', 'package.json', '--public-key'],
    ['logs', 'verify', '--file', 'package.json', '--checkpoint'],
    ['import', 'package.json', '--mapping'],
    ['import', 'package.json', '--key-file'],
    ['export', '--key-file'],
    ['login', 'http://127.0.0.1:9', '--key-file'],
    ['agent', 'run', '--key-file', 'FILE', '--', 'true'],
    ['reactor', 'run'],
  ];
  const streams: readonly (readonly string[])[] = [
    ['logs', 'verify', '--file'],
    ['import', '--preview'],
    ['token', 'create', '--type', 'token', '--data'],
  ];
  const refusals: readonly (readonly [string, string])[] = [
    [missing, `The file ${missing} does not exist.`],
    [below, `The file ${below} does not exist.`],
    [directory, `${directory} is a directory. Name a file.`],
    ...(isRoot
      ? []
      : [
          [
            closed,
            `The file ${closed} cannot be read: this user has no permission to read it.`,
          ] as const,
        ]),
  ];
  const cases = [
    ...[...commands, ...streams].flatMap((words) =>
      refusals.map((one) => [words, ...one] as const),
    ),
    ...commands.map((words) => [words, empty, `The file ${empty} is empty.`] as const),
  ];
  await Promise.all(
    cases.map(async ([words, file, says]) => {
      const { code, stderr } = await runCommand(withFile(words, file), env);
      assert.ok(stderr.endsWith(`: ${says}\n`), `${words.join(' ')} ${file}: ${stderr}`);
      assert.equal(code, 1);
    }),
  );
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

/** How the command line explains itself, and what it says to words that make no sense. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { globSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { commands } from '../../src/cli/commands.ts';
import { runCommand } from '../support/process.ts';
import { freePort } from '../support/temporary.ts';

const root = join(import.meta.dirname, '..', '..');
const run = (...words: string[]) => runCommand(words, {});

/** On standard error there is one line, and it is no stack. */
function assertOneLine(stderr: string): void {
  assert.match(stderr, /^strongroom[^\n]*: [^\n]+\n$/);
}

test('help lists every command, without words, with help, -h and --help', async () => {
  const [bare, ...others] = await Promise.all([run(), run('help'), run('-h'), run('--help')]);
  assert.equal(bare.code, 0, bare.stderr);
  for (const name of Object.keys(commands)) {
    const [first = ''] = name.split(' ');
    assert.match(bare.stdout, new RegExp(`^ {2}${first} `, 'm'));
  }
  for (const other of others) assert.deepEqual(other, bare);
});

test('each command has a help with its options and examples that name only those', async () => {
  for (const [name, { load }] of Object.entries(commands)) {
    const { flags, examples } = await load();
    assert.ok(examples.length > 0, name);
    for (const example of examples) {
      for (const [, flag = ''] of example.matchAll(/--([a-z-]+)/g)) {
        assert.ok(flag in flags, `${name}: --${flag}`);
      }
    }
  }
  const words = ['tenant', 'quota'];
  const [long, short, asked] = await Promise.all([
    run(...words, '--help'),
    run(...words, '-h'),
    run('help', ...words),
  ]);
  assert.equal(long.code, 0, long.stderr);
  assert.match(long.stdout, /^Usage: strongroom tenant quota /);
  assert.match(long.stdout, /--set <NAME=VALUE>/);
  assert.match(long.stdout, /Examples:\n {2}\$ strongroom tenant quota --tenant acme\n/);
  assert.deepEqual([short, asked], [long, long]);
});

test('--version prints the version of the package', async () => {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  assert.deepEqual(await run('--version'), { code: 0, stdout: `${version}\n`, stderr: '' });
});

test('words that make no sense are one line on standard error and exit code 2, without a value', async () => {
  const secret = 'xyzzy';
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [['tennant'], /^strongroom: unknown command 'tennant' \(Did you mean tenant\?\)/],
    [['tenant', 'lst'], /^strongroom: unknown command 'lst' \(Did you mean list\?\)/],
    [['tenant', 'list', '--jsn'], /^strongroom tenant list: unknown option '--jsn' \(Did you/],
    [['key', 'delete', `--kee=${secret}`], /^strongroom key delete: unknown option '--kee'/],
    [['key', 'list', secret], /^strongroom key list: too many arguments .* but got 1\. See:/],
    [['serve', '--port', secret], /^strongroom serve: unknown option '--port'/],
    [['tenant', 'create', '--name'], /^strongroom tenant create: option '--name <NAME>' argument/],
    [['tenant', 'create'], /^strongroom tenant create: --name is required/],
    [['tenant', 'quota', '--tenant', 'a', '--set', 'b'], /--set takes name=value/],
    [['completion', 'tcsh'], /^strongroom completion: the SHELL must be bash, zsh or fish/],
  ];
  await Promise.all(
    cases.map(async ([words, says]) => {
      const { code, stdout, stderr } = await run(...words);
      assert.deepEqual([code, stdout], [2, ''], words.join(' '));
      assert.match(stderr, says);
      assertOneLine(stderr);
      assert.doesNotMatch(stderr, /xyzzy/);
    }),
  );
  const group = await run('tenant');
  assert.deepEqual([group.code, group.stdout], [2, '']);
  assert.match(group.stderr, /^Usage: strongroom tenant /);
});

test('no command sends a key over plain HTTP beyond loopback', async () => {
  const url = 'http://vault.example.com:8080';
  const key = { STRONGROOM_KEY: 'key_test_pvt_x' };
  const cases = [
    [['import', 'package.json', '--url', url], key],
    [['export', '--url', url], key],
    [['export'], { ...key, STRONGROOM_URL: url }],
    [['app', 'list'], { ...key, STRONGROOM_URL: url }],
    [['token', 'get', 'any'], { ...key, STRONGROOM_URL: url }],
  ] as const;
  await Promise.all(
    cases.map(async ([words, environment]) => {
      const { code, stdout, stderr } = await runCommand(words, environment);
      assert.deepEqual([code, stdout], [2, ''], `${words.join(' ')} ${stderr}`);
      assert.match(stderr, /must be https, because the key is sent there/);
    }),
  );
});

test('a file that is missing and a server that is not there are one line and exit code 1', async () => {
  const port = await freePort();
  const key = { STRONGROOM_KEY: 'key_test_pvt_x' };
  const user = ['--url', `http://user:xyzzy@localhost:${port}`];
  const database = { STRONGROOM_DATABASE_URL: `postgres://user:xyzzy@localhost:${port}/vault` };
  const cases = [
    [['import', '/nowhere/at-all', ...user], key, /The file \/nowhere\/at-all does not exist\./],
    [
      ['import', 'package.json', ...user],
      key,
      /: cannot reach http:\/\/localhost:\d+: ECONNREFUSED; /,
    ],
    [['export', ...user], key, /: cannot reach http:\/\/localhost:\d+: ECONNREFUSED; /],
    [
      ['export', '--key-file', '/nowhere/at-all'],
      {},
      /The file \/nowhere\/at-all does not exist\./,
    ],
    [
      ['tenant', 'list'],
      database,
      /: the database cannot be reached: .*ECONNREFUSED.*; check STRONGROOM_DATABASE_URL/,
    ],
    [['logs', 'verify', '--file', '/nowhere/at-all'], {}, /The file .* does not exist\./],
  ] as const;
  await Promise.all(
    cases.map(async ([words, environment, says]) => {
      const { code, stdout, stderr } = await runCommand(words, environment);
      assert.deepEqual([code, stdout], [1, ''], words.join(' '));
      assert.match(stderr, says);
      assertOneLine(stderr);
      assert.doesNotMatch(stderr, /xyzzy/);
    }),
  );
});

test('each command is in the table of docs/cli.md, by itself or with all of its group', () => {
  const text = readFileSync(join(root, 'docs', 'cli.md'), 'utf8');
  const listed = [...text.matchAll(/^\| (`[a-z].*?) \|/gm)].flatMap(([, cell = '']) => {
    const names = [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
    const group = /^.* /.exec(names[0] ?? '')?.[0] ?? '';
    return names.map((name) => (name.startsWith(group) ? name : group + name));
  });
  const has = (name: string, of: string) => name === of || name.startsWith(`${of} `);
  const names = Object.keys(commands);
  assert.deepEqual(
    names.filter((name) => !listed.some((one) => has(name, one))),
    [],
  );
  assert.deepEqual(
    listed.filter((one) => !names.some((name) => has(name, one))),
    [],
  );
});

test('each exit code is a row of docs/cli.md, and means what it says', async () => {
  const text = readFileSync(join(root, 'docs', 'cli.md'), 'utf8');
  const [, table = ''] = text.split('\n## Output and exit codes\n');
  const rows = [...table.matchAll(/^\| (\d+) \| (.+) \|$/gm)];
  assert.deepEqual(
    rows.map(([, code]) => Number(code)),
    [0, 1, 2, 3, 130],
  );
  const [done, failed, wrong] = await Promise.all([
    run('--version'),
    run('logs', 'verify', '--file', '/nowhere/at-all'),
    run('nonsense'),
  ]);
  assert.deepEqual(
    [done, failed, wrong].map(({ code }) => code),
    [0, 1, 2],
  );
  // Commands whose source has a code of its own are those that the row names.
  const found = globSync('src/cli/**/*.ts', { cwd: root }).filter((path) =>
    /^const \w+ = 3;$/m.test(readFileSync(join(root, path), 'utf8')),
  );
  const named = [...(rows[3]?.[2] ?? '').matchAll(/`(\w+) verify`/g)].map(([, group]) => group);
  assert.deepEqual(named, ['logs', 'erasure']);
  const own = found.filter((path) => /(?:logs\/verify|erasure)\.ts$/.test(path));
  assert.equal(own.length, named.length);
});

test('bash completes commands, their second words, options and choices', async () => {
  const { stdout: script } = await run('completion', 'bash');
  const complete = (...words: string[]) => {
    const quoted = ['strongroom', ...words].map((word) => `'${word}'`).join(' ');
    const ask = `COMP_WORDS=(${quoted}); COMP_CWORD=${words.length}; _strongroom; echo "\${COMPREPLY[*]}"`;
    return String(execFileSync('bash', ['-c', `${script}\n${ask}`])).trim();
  };
  assert.equal(complete('ten'), 'tenant');
  assert.equal(complete('tenant', ''), 'create list quota hosts delete');
  assert.equal(complete('tenant', 'hosts', ''), 'add list remove');
  assert.equal(complete('tenant', 'hosts', 'add', '--t'), '--tenant');
  assert.equal(complete('tenant', 'quota', '--t'), '--tenant');
  assert.equal(complete('tenant', 'quota', '--tenant', 'acme', '--s'), '--set');
  assert.equal(complete('completion', ''), 'bash zsh fish --ids --help');
  assert.equal(complete('app create --type', ''), 'public private management');
});

test('zsh and fish know every command and every option', async () => {
  for (const shell of ['zsh', 'fish']) {
    const { code, stdout } = await run('completion', shell);
    assert.equal(code, 0);
    for (const [name, { load }] of Object.entries(commands)) {
      const words = name.split(' ');
      for (const word of words)
        assert.match(stdout, new RegExp(`\\b${word}\\b`), `${shell} ${name}`);
      for (const flag of Object.keys((await load()).flags)) {
        assert.match(stdout, new RegExp(shell === 'zsh' ? `'--${flag}:` : ` -l ${flag} `));
      }
    }
  }
});

test('an export whose file cannot be written ends, whatever the vault still sends', async (t) => {
  const server = createServer(({ url }, response) => {
    if (url === '/tokens?size=0') response.end('{"pagination":{"total_items":2}}');
    // The rest never comes: only the command can end this response.
    else response.write('{"id":"one"}\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const { code, stderr } = await runCommand(
    ['export', '/nowhere/at-all', '--url', `http://127.0.0.1:${port}`],
    { STRONGROOM_KEY: 'key_test_pvt_x' },
  );
  assert.equal(code, 1);
  assert.match(stderr, /ENOENT: no such file/);
  assertOneLine(stderr);
});

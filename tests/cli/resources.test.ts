/** Commands for resources do what the API does, with a key that is in no argument and no file that others may read. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';
import { commands } from '../../src/cli/commands.ts';
import { resourceCommands } from '../../src/cli/resources/table.ts';
import type { Flag } from '../../src/cli/terminal/command.ts';
import { engineOf } from '../support/engines.ts';
import { type Finished, runCommand, runWithInput } from '../support/process.ts';
import { root } from '../support/source.ts';
import { type Lender, temporaryDirectory } from '../support/temporary.ts';
import { managementKey, startVault, type TestVault } from '../support/vault.ts';

const execute = promisify(execFile);

/** A directory with `strongroom`, and an `npx` that runs it as that of npm does. */
function programs(t: Lender): string {
  const path = temporaryDirectory(t);
  const program = join(root, 'bin', 'strongroom.js');
  const write = (name: string, text: string) =>
    writeFileSync(join(path, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  write('strongroom', `exec '${process.execPath}' '${program}' "$@"`);
  write('npx', 'shift; exec strongroom "$@"');
  return path;
}

const card = { number: '4242424242424242', expiration_month: 12, expiration_year: 2030 };

suite('commands for resources', () => {
  const ends: (() => void | Promise<void>)[] = [];
  const lender = { after: (end: () => void | Promise<void>) => void ends.push(end) };
  after(async () => {
    for (const end of ends.reverse()) await end();
  });
  let vault: TestVault;
  let directory = '';
  const environment = () => ({ XDG_CONFIG_HOME: directory });
  const run = (...words: string[]) => runCommand(words, environment());
  const runGiven = (input: string, ...words: string[]) => runWithInput(words, environment(), input);
  const file = (name: string, content: unknown) => {
    const path = join(directory, name);
    writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
    return path;
  };
  const json = (result: Finished) => {
    assert.equal(result.code, 0, result.stderr);
    return JSON.parse(result.stdout);
  };

  before(async () => {
    directory = temporaryDirectory(lender);
    vault = await startVault(lender, engineOf('sqlite'));
    const login = await runGiven(`${managementKey}\n`, 'login', vault.url, '--profile', 'admin');
    assert.equal(login.code, 0, login.stderr);
    const rules = file('rules.json', [
      {
        description: 'all',
        priority: 1,
        container: '/',
        transform: 'reveal',
        permissions: ['token:create', 'token:read', 'token:search', 'token:update', 'token:delete'],
      },
    ]);
    const app = json(
      await run(
        'app',
        'create',
        '--name',
        'payments',
        '--type',
        'private',
        '--rules',
        rules,
        '--json',
      ),
    );
    const keyFile = file('key', `${app.key}\n`);
    chmodSync(keyFile, 0o600);
    const second = await run('login', vault.url, '--profile', 'payments', '--key-file', keyFile);
    assert.equal(second.code, 0, second.stderr);
  });

  test('store a key in a file that its owner alone may read, and refuse it where others may', async () => {
    const profiles = join(directory, 'strongroom', 'profiles.json');
    assert.equal(statSync(profiles).mode & 0o777, 0o600);
    const listed = await run('profile', 'list');
    assert.match(listed.stdout, /payments +http:\/\/\S+ +yes\n/);
    assert.doesNotMatch(listed.stdout, /key_|bootstrap/);
    chmodSync(profiles, 0o640);
    const refused = await run('token', 'list');
    chmodSync(profiles, 0o600);
    assert.equal(refused.code, 2);
    assert.match(refused.stderr, /others may read .*chmod 600/);
    const keyFile = file('open-key', 'x');
    chmodSync(keyFile, 0o644);
    const open = await run('login', vault.url, '--key-file', keyFile);
    assert.deepEqual([open.code, /chmod 600/.test(open.stderr)], [2, true]);
  });

  test('log in only where a vault knows the key, and never over plain HTTP elsewhere', async () => {
    const wrong = await runGiven('key_test_pvt_wrong\n', 'login', vault.url);
    assert.equal(wrong.code, 1);
    assert.match(wrong.stderr, /returned 401/);
    const plain = await runGiven(`${managementKey}\n`, 'login', 'http://vault.example.com');
    assert.equal(plain.code, 2);
    assert.match(plain.stderr, /must be https/);
    assert.doesNotMatch(
      readFileSync(join(directory, 'strongroom', 'profiles.json'), 'utf8'),
      /wrong/,
    );
  });

  test('create, read, find, change and delete a token, with its value from standard input', async () => {
    const created = await runGiven(
      JSON.stringify(card),
      ...['token', 'create', '--type', 'card', '--id', 'my-card', '--data', '-'],
      ...['--metadata', 'order=4711', '--json'],
    );
    assert.equal(json(created).metadata.order, '4711');
    const number = await run('token', 'get', 'my-card', '--query', '$.data.number');
    assert.equal(number.stdout, '4242424242424242\n');
    const updated = await run('token', 'update', 'my-card', '--metadata', 'order=4712', '--json');
    assert.equal(json(updated).metadata.order, '4712');
    const found = await run('token', 'search', 'metadata.order:4712');
    assert.match(found.stdout, /^ID +TYPE +CONTAINERS +DATA +CREATED_AT\nmy-card +card +/);
    const listed = await run('token', 'list', '--type', 'card', '--query', '$.data[*].id');
    assert.equal(listed.stdout, 'my-card\n');
    const unset = await run('token', 'update', 'my-card', '--unset', 'metadata', '--json');
    assert.equal(json(unset).metadata, undefined);
    const deleted = await run('token', 'delete', 'my-card');
    assert.deepEqual(deleted, { code: 0, stdout: '', stderr: '' });
    const gone = await run('token', 'get', 'my-card');
    assert.equal(gone.code, 1);
    assert.match(gone.stderr, /^strongroom token get: the vault returned 404: /);
  });

  test('a number in a file stays a text', async () => {
    const data = file('number', '4242424242424242\n');
    const created = json(
      await run('token', 'create', '--type', 'card_number', '--data', data, '--json'),
    );
    assert.equal(created.data, '4242424242424242');
  });

  test('an update of an application changes what it names, and keeps its rules', async () => {
    const { data } = json(
      await run('app', 'list', '--profile', 'admin', '--type', 'private', '--json'),
    );
    const [{ id }] = data;
    const named = json(
      await run('app', 'update', id, '--name', 'checkout', '--profile', 'admin', '--json'),
    );
    assert.equal(named.name, 'checkout');
    assert.equal(named.rules[0].container, '/');
    const explained = json(
      await run(
        ...['rule', 'explain', '--application-id', id, '--permission', 'token:read'],
        ...['--container', '/pci/high/', '--profile', 'admin', '--json'],
      ),
    );
    assert.deepEqual([explained.application.id, explained.transform], [id, 'reveal']);
  });

  test('a refusal names the attribute, and no value', async () => {
    const data = file('wrong', { number: '4242424242424241' });
    const refused = await run('token', 'create', '--type', 'card', '--data', data);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /returned 400: data\.number must be a card number/);
    assert.doesNotMatch(refused.stderr, /424241/);
  });

  test('words that cannot be meant are refused before a request', async () => {
    const lines = vault.logged.length;
    const cases: readonly (readonly [RegExp, ...string[]])[] = [
      [/the ID is missing/, 'token', 'get'],
      [/--size must be a number/, 'token', 'list', '--size', 'x'],
      [/--metadata must be NAME=TEXT/, 'token', 'create', '--metadata', 'x'],
      [/--query must be a JSONPath/, 'token', 'list', '--query', 'x['],
      [
        /there is no profile of that name; there are: admin, payments/,
        'app',
        'list',
        '--profile',
        'x',
      ],
      [/--unset must be one of: data, /, 'token', 'update', 'a', '--unset', 'x'],
    ];
    for (const [expected, ...words] of cases) {
      const { code, stderr } = await run(...words);
      assert.equal(code, 2, words.join(' '));
      assert.match(stderr, expected);
    }
    assert.equal(vault.logged.length, lines);
  });

  test('what a stored text holds does not steer the terminal', async () => {
    const created = await run(
      ...['app', 'create', '--name', 'a\u200bb', '--type', 'private'],
      ...['--permissions', 'token:read', '--profile', 'admin'],
    );
    assert.equal(created.code, 0, created.stderr);
    assert.match(created.stdout, /name +a\\u200bb\n/);
  });

  test('the key of the environment goes before the stored one', async () => {
    const words = ['app', 'list'];
    assert.equal((await runCommand(words, environment())).code, 1, 'payments may not');
    const given = { STRONGROOM_KEY: managementKey, STRONGROOM_URL: vault.url };
    assert.equal((await runCommand(words, given)).code, 0);
    const other = await runCommand(words, { ...environment(), STRONGROOM_PROFILE: 'admin' });
    assert.equal(other.code, 0, other.stderr);
  });

  test('keys of applications and of clients are made, listed and deleted like other resources', async () => {
    const [app] = json(await run('app', 'list', '--json', '--profile', 'admin')).data;
    const words = ['--json', '--profile', 'admin'];
    const made = json(await run('app', 'keys', 'create', app.id, ...words));
    const listed = async () =>
      json(await run('app', 'keys', 'list', app.id, ...words)).map((one: { id: string }) => one.id);
    assert.ok((await listed()).includes(made.id));
    const gone = await run('app', 'keys', 'delete', app.id, made.id, '--profile', 'admin');
    assert.equal(gone.code, 0, gone.stderr);
    assert.ok(!(await listed()).includes(made.id));
    const encryption = json(await run('encryption-key', 'create', ...words));
    const [found] = json(await run('encryption-key', 'list', ...words));
    assert.equal(found.id, encryption.id);
    const ended = await run('encryption-key', 'delete', encryption.id, '--profile', 'admin');
    assert.equal(ended.code, 0, ended.stderr);
  });

  test('shells complete ids of the vault, names of profiles and types, also after npx', async (t) => {
    const [app] = json(await run('app', 'list', '--json', '--profile', 'admin')).data;
    const path = programs(t);
    const used = await run('profile', 'use', 'admin');
    assert.equal(used.code, 0, used.stderr);
    const more = { ...environment(), PATH: `${path}:${process.env['PATH']}` };
    const scriptOf = async (shell: string) => (await run('completion', shell)).stdout;
    const shell = (name: string, text: string) => execute(name, ['-c', text], { env: more });
    const isHere = (name: string) =>
      shell(name, 'true').then(
        () => true,
        () => false,
      );
    const bash = await scriptOf('bash');
    const completed = async (...words: string[]) => {
      const quoted = words.map((word) => `'${word}'`).join(' ');
      const ask = `COMP_WORDS=(${quoted}); COMP_CWORD=${words.length - 1}; _strongroom; echo "\${COMPREPLY[*]}"`;
      const { stdout } = await shell('bash', `${bash}\n${ask}`);
      return stdout.trim().split(' ');
    };
    assert.ok((await completed('strongroom', 'app', 'get', '')).includes(app.id));
    assert.deepEqual(await completed('strongroom', 'app', 'get', app.id.slice(0, 8)), [app.id]);
    assert.ok((await completed('npx', 'strongroom', 'rule', 'list', '')).includes(app.id));
    assert.deepEqual(await completed('npx', ''), ['strongroom']);
    assert.deepEqual(await completed('npx', 'strongroom', 'ten'), ['tenant']);
    const profile = ['token', 'list', '--profile', ''];
    assert.deepEqual(await completed('strongroom', ...profile), ['admin', 'payments']);
    assert.ok(
      (await completed('strongroom', 'token', 'create', '--type', '')).includes('card_number'),
    );
    // Tokens are not listed for a completion: to list them is to read them.
    assert.ok(
      (await completed('strongroom', 'token', 'get', '')).every((word) => word.startsWith('-')),
    );
    if (await isHere('fish')) {
      const fish = await scriptOf('fish');
      const ask = async (line: string) =>
        (await shell('fish', `${fish}\ncomplete -C ${JSON.stringify(line)}`)).stdout;
      for (const program of ['strongroom', 'npx strongroom']) {
        assert.match(await ask(`${program} app get `), new RegExp(`^${app.id}\t.`, 'm'));
        assert.match(await ask(`${program} token list --profile `), /^payments/m);
        assert.match(await ask(`${program} tok`), /^token/m);
      }
    } else t.diagnostic('not here: fish');
    if (await isHere('zsh')) {
      const zsh = await scriptOf('zsh');
      const ask = async (...words: string[]) => {
        const stubs =
          'compdef() { :; }; _describe() { print -rl -- $choices; }; compadd() { print -rl -- "$@"; }';
        const set = `words=(${words.map((word) => `'${word}'`).join(' ')}); CURRENT=${words.length}`;
        return (await shell('zsh', `${stubs}\n${zsh}\n${set}; _strongroom`)).stdout;
      };
      assert.match(await ask('strongroom', 'app', 'get', ''), new RegExp(`^${app.id}:.`, 'm'));
      assert.match(
        await ask('npx', 'strongroom', 'app', 'get', ''),
        new RegExp(`^${app.id}:`, 'm'),
      );
      assert.match(await ask('npx', ''), /^strongroom$/m);
    } else t.diagnostic('not here: zsh');
  });

  test('logging out removes the key', async () => {
    await run('profile', 'use', 'admin');
    const removed = await run('logout', '--profile', 'payments');
    assert.equal(removed.code, 0, removed.stderr);
    const text = readFileSync(join(directory, 'strongroom', 'profiles.json'), 'utf8');
    assert.doesNotMatch(text, /payments/);
  });
});

test('what may be secret is no argument of a command', async () => {
  for (const name of Object.keys(resourceCommands)) {
    const command = await commands[name]?.load();
    assert.ok(command, name);
    for (const secret of ['data', 'configuration', 'client-key', 'code', 'nonce', 'encrypted']) {
      const flag: Flag | undefined = command.flags[secret];
      if (flag) assert.equal(flag.value, 'FILE', `${name} --${secret}`);
    }
  }
});

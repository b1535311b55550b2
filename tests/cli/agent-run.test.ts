/** `strongroom agent run`: unchanged programs use values of the vault, and hold none. */
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { after, suite, type TestContext, test } from 'node:test';
import type { Behavior } from '../support/destination.ts';
import { startEgress } from '../support/egress.ts';
import { untilSo } from '../support/poll.ts';
import { account } from '../support/postgres-installation.ts';
import { type Environment, interruptCommand, main, runProcess } from '../support/process.ts';
import { headerOf } from '../support/proxy-calls.ts';
import { python } from '../support/python.ts';
import { descendants, isRunning, killIfAlive } from '../support/running.ts';
import { freePort, temporaryDirectory } from '../support/temporary.ts';
import { newTenant } from '../support/tenant.ts';

const ends: (() => unknown)[] = [];
const lender = { after: (end: () => unknown) => void ends.unshift(end) };
after(async () => {
  for (const end of ends) await end();
});

const { called, vault } = await startEgress(lender);
const { destination } = called;
const visa = '4242424242424242';
const secret = 'plain-api-key-0123456789';
const tenant = await newTenant(vault);
const data = { number: visa, expiration_month: 12, expiration_year: 2030 };
await tenant.token({ id: 'card', type: 'card', data });
await tenant.token({ id: 'api-key', type: 'token', data: secret });
const policy = {
  host: 'localhost',
  port: destination.port,
  tokens: ['card', 'api-key'],
  places: ['header:authorization', 'json:card.number', 'form:number'],
};
const key = await tenant.application({ permissions: ['proxy:invoke'], egress: [policy] });

/** `--only` is for users who are not root. */
const giveAway = (path: string) => {
  if (account.uid !== undefined) chownSync(path, account.uid, account.gid);
};
const folder = temporaryDirectory(lender);
giveAway(folder);
const fileOf = (name: string, text: string) => {
  const file = join(folder, name);
  writeFileSync(file, text, { mode: 0o600 });
  giveAway(file);
  return file;
};
const keyFile = fileOf('agent.key', `${key}\n`);
const variables = fileOf(
  'agent.variables',
  '# placeholders\nAPI_KEY=token:api-key\nCARD=token:card#number\n\nDIGITS=digits:card#number\n',
);
const temporary = join(folder, 'tmp');
mkdirSync(temporary);
giveAway(temporary);

const environment: Environment = {
  TMPDIR: temporary,
  STRONGROOM_URL: vault.url,
  STRONGROOM_EGRESS_ADDRESS: new URL(vault.running.egressUrl ?? '').host,
};
const options = ['--key-file', keyFile, '--variables', variables];
const runAgent = (program: readonly string[], more: Environment = {}, given = options) =>
  runProcess(['agent', 'run', ...given, '--', ...program], { ...environment, ...more });

const only = [...options, '--only'];
const runOnly = (program: readonly string[], more: Environment = {}) =>
  runProcess(['agent', 'run', ...only, '--', ...program], { ...environment, ...more }, account);

const url = `https://localhost:${destination.port}/v1/charges`;
const received = () => destination.requests.splice(0);
const printing = (expression: string) => ['node', '-e', `console.log(${expression})`];

/** Gives back what it gets. */
const echo: Behavior = async ({ response, received: all }) => {
  const { headers, body } = await all;
  response.end(`${headerOf(headers, 'authorization') ?? ''} ${body}`);
};
destination.behave(echo);

const fetching = `
const response = await fetch(process.argv[1], {
  method: 'POST',
  headers: { authorization: 'Bearer ' + process.env.API_KEY, 'content-type': 'application/json' },
  body: JSON.stringify({ card: { number: process.env.CARD } }),
});
console.log(response.status, await response.text());`;

const opening = `
import json, os, sys, urllib.request
body = json.dumps({"card": {"number": os.environ["CARD"]}}).encode()
headers = {"authorization": "Bearer " + os.environ["API_KEY"], "content-type": "application/json"}
with urllib.request.urlopen(urllib.request.Request(sys.argv[1], body, headers)) as response:
    print(response.status, response.read().decode())`;

const charging = `
import Stripe from 'stripe';
const { hostname: host, port, pathname } = new URL(process.argv[1]);
const provider = new Stripe(process.env.API_KEY, { host, port: Number(port), maxNetworkRetries: 0 });
const charge = await provider.rawRequest('POST', pathname, { number: process.env.CARD });
console.log(charge.lastResponse.statusCode, charge.id);`;

const requesting = `
import os, sys, requests
headers = {"authorization": "Bearer " + os.environ["API_KEY"]}
response = requests.post(sys.argv[1], json={"card": {"number": os.environ["CARD"]}}, headers=headers)
print(response.status_code, response.text)`;

const curling = `curl -sS -w ' %{http_code}' "$0" -H "authorization: Bearer $API_KEY" --data "number=$DIGITS"`;

const programs: Readonly<Record<string, readonly string[]>> = {
  'fetch of Node': ['node', '--input-type=module', '-e', fetching, url],
  'urllib of Python': [python, '-c', opening, url],
  'requests of Python': [python, '-c', requesting, url],
  curl: ['sh', '-c', curling, url],
};

const hasRequests = spawnSync(python, ['-c', 'import requests']).status === 0;
const isAbsent = (tool: string) => spawnSync(tool, ['--version']).error !== undefined;

/** Whether the user who is not root reads the program and the test's files. */
const canStart = spawnSync('cat', [main, keyFile], account).status === 0;
/** As the command makes them. */
const hasNamespaces =
  spawnSync(
    'unshare',
    [
      ...['--user', '--map-root-user', '--net', '--pid', '--mount', '--fork'],
      ...['sh', '-c', 'ip link set lo up && mount -t tmpfs t /run && mount -t proc proc /proc'],
    ],
    account,
  ).status === 0;

const inTerminal = `
import pty, sys
print("ended with", pty.spawn(sys.argv[1:]) >> 8)`;
const hasTerminals =
  spawnSync('python3', ['-c', 'import os, pty; pty.openpty()'], account).status === 0;

suite('agent run', () => {
  for (const [name, words] of Object.entries(programs)) {
    const [, , script = ''] = words;
    const tool = name === 'curl' ? 'curl' : String(words[0]);
    const skip = isAbsent(tool) || (script === requesting && !hasRequests);
    test(`${name} sends values that the program never has`, { skip }, async () => {
      received();
      const { code, stdout, stderr } = await runAgent(words);
      assert.equal(code, 0, `${stderr} ${script}`);
      assert.match(stdout, /\b200\b/);
      assert.ok(!`${stdout}${stderr}`.includes(secret) && !stdout.includes(visa), stdout);
      const [request, ...others] = received();
      assert.equal(others.length, 0);
      assert.equal(headerOf(request?.headers ?? [], 'authorization'), `Bearer ${secret}`);
      assert.ok(request?.body.includes(visa), String(request?.body));
    });
  }

  test('the SDK of a payment provider, which keeps connections of its own, does as well', async (t) => {
    t.after(() => destination.behave(echo));
    destination.behave(async ({ response, received: all }) => {
      await all;
      response.setHeader('content-type', 'application/json').end('{"id":"ch_1"}');
    });
    received();
    const { code, stdout, stderr } = await runAgent([
      'node',
      '--input-type=module',
      '-e',
      charging,
      url,
    ]);
    assert.deepEqual([code, stdout], [0, '200 ch_1\n'], stderr);
    const [request] = received();
    assert.equal(headerOf(request?.headers ?? [], 'authorization'), `Bearer ${secret}`);
    assert.equal(String(request?.body), `number=${visa}`);
  });

  test('git clones over HTTPS, signed in with a key that it never has', {
    skip: isAbsent('git'),
  }, async (t) => {
    const repository = newRepository();
    t.after(() => destination.behave(echo));
    destination.behave(async ({ request, response }) => {
      const file = join(repository, new URL(request.url ?? '', url).pathname);
      const basic = `Basic ${Buffer.from(`agent:${secret}`).toString('base64')}`;
      if (request.headers.authorization !== basic)
        response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end();
      else if (existsSync(file) && statSync(file).isFile()) response.end(readFileSync(file));
      else response.writeHead(404).end();
    });
    const copy = join(folder, 'copy');
    const clone = `git clone "https://agent:$API_KEY@localhost:${destination.port}/" "$0"`;
    const { code, stderr } = await runAgent(['sh', '-c', clone, copy]);
    assert.equal(code, 0, stderr);
    assert.equal(readFileSync(join(copy, 'a.txt'), 'utf8'), 'of the repository');
    received();
  });

  test('git pushes over HTTPS to a server of its own protocol, and clones again', {
    skip: isAbsent('git'),
  }, async (t) => {
    t.after(() => destination.behave(echo));
    const bare = join(folder, 'pushed.git');
    execFileSync('git', ['init', '--bare', bare], { stdio: 'pipe' });
    execFileSync('git', ['-C', bare, 'config', 'http.receivepack', 'true']);
    destination.behave(gitServer(folder));
    const script = `set -e
      git clone "https://agent:$API_KEY@localhost:${destination.port}/pushed.git" "$0/work"
      cd "$0/work"
      echo by the agent > b.txt
      git add .
      git -c user.name=a -c user.email=a@b.example commit -m b
      git push origin HEAD
      git clone "https://agent:$API_KEY@localhost:${destination.port}/pushed.git" "$0/again"`;
    const place = join(folder, 'git');
    mkdirSync(place);
    const { code, stderr } = await runAgent(['sh', '-c', script, place]);
    assert.equal(code, 0, stderr);
    assert.equal(readFileSync(join(place, 'again', 'b.txt'), 'utf8'), 'by the agent\n');
    assert.ok(!readFileSync(join(place, 'work', '.git', 'config'), 'utf8').includes(secret));
    received();
  });

  test('the program has placeholders, the settings of the proxy, and nothing of the vault', async () => {
    const { code, stdout, stderr } = await runAgent(printing('JSON.stringify(process.env)'), {
      API_KEY: 'the value itself',
      HTTPS_PROXY: 'http://elsewhere.example',
      NO_PROXY: '*',
      OWN: 'kept',
      STRONGROOM_KEY: 'key_of_an_administrator',
      STRONGROOM_ROOT_KEY: 'root',
    });
    assert.equal(code, 0, stderr);
    const env = JSON.parse(stdout);
    for (const name of ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy']) {
      assert.match(env[name], /^http:\/\/agent:[0-9a-f]{48}@127\.0\.0\.1:\d+$/);
    }
    assert.ok(!stdout.includes(key));
    assert.match(env.API_KEY, /^sr_/);
    assert.match(env.CARD, /^sr_/);
    assert.match(env.DIGITS, /^9999\d{12}$/);
    assert.deepEqual([env.OWN, env.NODE_USE_ENV_PROXY], ['kept', '1']);
    assert.deepEqual(
      Object.keys(env).filter((name) => /STRONGROOM|NO_PROXY|COMPILE_CACHE/i.test(name)),
      [],
    );
    for (const part of [visa, secret, 'administrator', 'the value itself']) {
      assert.ok(!stdout.includes(part), part);
    }
  });

  test('the authority is in files of this user alone, with the roots, and gone at the end', async () => {
    const names =
      '["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO", "CURL_CA_BUNDLE"]';
    const look = `const { statSync, readFileSync } = require('node:fs');
      const { dirname } = require('node:path');
      const modeOf = (path) => (statSync(path).mode & 0o777).toString(8);
      console.log(JSON.stringify(${names}.map((name) => process.env[name]).map((file) =>
        [modeOf(file), modeOf(dirname(file)), readFileSync(file, 'utf8').split('BEGIN CERT').length - 1])));`;
    const { code, stdout, stderr } = await runAgent(['node', '-e', look]);
    assert.equal(code, 0, stderr);
    const [extra, ...roots] = JSON.parse(stdout);
    assert.deepEqual(extra, ['600', '700', 1]);
    for (const [file, directory, count] of roots) {
      assert.deepEqual([file, directory], ['600', '700']);
      assert.ok(count > 50, count);
    }
    assert.deepEqual(left(), []);
  });

  test('arguments reach the program as they are, and its exit code is that of the command', async () => {
    const words = [
      'node',
      '-e',
      'console.log(process.argv.slice(1).join()); process.exit(41)',
      '--',
    ];
    const { code, stdout } = await runAgent([...words, '--some_name', '--help', '-x=1', '--']);
    assert.deepEqual([code, stdout], [41, '--some_name,--help,-x=1,--\n']);
    assert.equal((await runAgent(['sh', '-c', 'kill -KILL $$'])).code, 137);
    const missing = await runAgent(['no-program-of-this-name']);
    assert.deepEqual([missing.code, missing.stdout], [127, '']);
    assert.match(missing.stderr, /^strongroom agent run: the program cannot be started: ENOENT\n$/);
    assert.equal((await runAgent([folder])).code, 126);
    assert.deepEqual(left(), []);
  });

  test('a signal reaches the program, which ends as it wants, and its files go with it', async () => {
    const waiting = `process.on('SIGINT', () => process.exit(7));
      setInterval(() => {}, 1000);
      console.log('ready');`;
    const { code, stderr } = await interruptCommand(
      ['agent', 'run', ...options, '--', 'node', '-e', waiting],
      environment,
      /ready/,
    );
    assert.equal(code, 7, stderr);
    assert.deepEqual(left(), []);
  });

  test('requests to this machine pass by the vault only where the user asks', async () => {
    const asked = printing('[process.env.NO_PROXY, process.env.no_proxy].join(" ")');
    assert.equal((await runAgent(asked)).stdout, ' \n');
    const { stdout } = await runAgent(asked, {}, [...options, '--direct-loopback']);
    assert.equal(stdout, 'localhost,127.0.0.1,::1 localhost,127.0.0.1,::1\n');
  });

  test('a file of variables with a value is refused without it, and nothing starts', async () => {
    const cases: readonly (readonly [text: string, says: RegExp])[] = [
      ['A=token:card#number\nCARD=4242424242424242', /^line 2 of \S+ must be NAME=token:ID/],
      ['CARD=token:', /^line 1 of \S+ must be/],
      ['CARD', /^line 1 of \S+ must be/],
      ['HTTPS_PROXY=token:card#number', /^line 1 of \S+: the command sets HTTPS_PROXY itself/],
      ['STRONGROOM_KEY=token:card', /^line 1 of \S+: the command sets STRONGROOM_KEY itself/],
      ['A=token:card#number\nA=token:api-key', /^line 2 of \S+: A is there twice/],
    ];
    for (const [text, says] of cases) {
      const file = fileOf('wrong.variables', text);
      const refused = await runAgent(printing('"began"'), {}, [
        '--key-file',
        keyFile,
        '--variables',
        file,
      ]);
      assert.deepEqual([refused.code, refused.stdout], [2, ''], text);
      assert.match(refused.stderr.replace('strongroom agent run: ', ''), says);
      assert.doesNotMatch(refused.stderr, /4242/);
    }
  });

  test('nothing starts with a key that shows values, or without a placeholder, a proxy, or a program', async () => {
    const rules = [
      {
        description: 'reads',
        priority: 1,
        permissions: ['token:read'],
        transform: 'reveal',
        container: '/',
      },
    ];
    const revealing = await tenant.application({ rules, egress: [policy] });
    const cases: readonly (readonly [given: string[], code: number, says: RegExp])[] = [
      [
        ['--key-file', fileOf('revealing.key', revealing)],
        1,
        /the key would show values to the program: .* reveals by token:read;/,
      ],
      [['--key-file', fileOf('none.key', 'key_of_nothing')], 1, /the vault returned 401/],
      [
        ['--key-file', keyFile, '--variables', fileOf('unknown.variables', 'CARD=token:nothing')],
        1,
        /: CARD: the vault returned 404/,
      ],
      [
        ['--key-file', keyFile, '--egress', `127.0.0.1:${await freePort()}`],
        1,
        /cannot reach the forward proxy at 127\.0\.0\.1:\d+: ECONNREFUSED; set STRONGROOM_EGRESS/,
      ],
      [['--key-file', keyFile, '--egress', 'ftp://127.0.0.1'], 2, /--egress must be HOST:PORT/],
      [[], 2, /there is no key/],
    ];
    for (const [given, expected, says] of cases) {
      const { code, stdout, stderr } = await runAgent(
        printing('"began"'),
        { XDG_CONFIG_HOME: folder },
        given,
      );
      assert.deepEqual([code, stdout], [expected, ''], stderr);
      assert.match(stderr, says);
      assert.equal(stderr.split('\n').length, 2, stderr);
    }
    const { code, stderr } = await runAgent([]);
    assert.equal(code, 2);
    assert.match(stderr, /the COMMAND is missing, after --/);
    assert.deepEqual(left(), []);
  });

  test('the key is in no argument of the program or of the command', {
    skip: process.platform !== 'linux',
  }, async () => {
    const look = `const { readFileSync } = require('node:fs');
      console.log(readFileSync('/proc/self/cmdline', 'utf8') + readFileSync('/proc/' + process.ppid + '/cmdline'));`;
    const { stdout } = await runAgent(['node', '-e', look]);
    assert.match(stdout, /agent/);
    assert.ok(!stdout.includes(key));
  });
});

/** The status of a CONNECT, or why there is none. */
async function connectThrough(proxy: URL, password: string): Promise<number | string> {
  const request = httpRequest({
    host: proxy.hostname,
    port: proxy.port,
    method: 'CONNECT',
    path: `localhost:${destination.port}`,
    headers: { 'proxy-authorization': `Basic ${btoa(`agent:${password}`)}` },
    agent: false,
  });
  request.end();
  try {
    const [response, socket] = (await once(request, 'connect')) as [IncomingMessage, Socket];
    socket.destroy();
    return response.statusCode ?? 0;
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  }
}

/** Begins a program that says its proxy, and waits. */
async function beginWaiting(t: TestContext, given: readonly string[]) {
  const waiting = 'console.log(process.env.HTTPS_PROXY); setInterval(() => {}, 1000)';
  const words = [main, 'agent', 'run', ...given, '--', process.execPath, '-e', waiting];
  const env = { PATH: process.env['PATH'], ...environment };
  const command = spawn(process.execPath, words, {
    ...(given === only && account),
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => {
    try {
      process.kill(-Number(command.pid), 'SIGKILL');
    } catch {
      // All of them have ended.
    }
  });
  const [line] = (await once(command.stdout, 'data')) as [Buffer];
  return { command, proxy: new URL(String(line).trim()) };
}

/** Gives a command a terminal, and presses Ctrl-C when it is ready. */
async function interruptAtTerminal(given: readonly string[], script: string): Promise<string> {
  const words = [process.execPath, main, 'agent', 'run', ...given, '--', 'node', '-e', script];
  const env = { PATH: process.env['PATH'], ...environment };
  const child = spawn('python3', ['-c', inTerminal, ...words], { ...account, env, stdio: 'pipe' });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      if (!/ready/.test(output) && /ready/.test(`${output}${chunk}`)) child.stdin.write('\x03');
      output += chunk;
    });
  await once(child, 'close');
  return output;
}

suite('the way of a program to the vault', () => {
  test('is open to its password alone, and ends at once with a command that is killed', async (t) => {
    const { command, proxy } = await beginWaiting(t, options);
    assert.equal(await connectThrough(proxy, proxy.password), 200);
    assert.equal(await connectThrough(proxy, key), 407);
    assert.equal(await connectThrough(proxy, ''), 407);
    // The password means nothing to the vault.
    const vaultProxy = new URL(vault.running.egressUrl ?? '');
    assert.equal(await connectThrough(vaultProxy, proxy.password), 407);
    process.kill(Number(command.pid), 'SIGKILL');
    await once(command, 'exit');
    assert.equal(await connectThrough(proxy, proxy.password), 'ECONNREFUSED');
    for (const name of left()) rmSync(join(temporary, name), { recursive: true });
  });

  test('is there where policies have tunnels alone, and the program trusts whom it trusted', {
    skip: isAbsent('curl'),
  }, async () => {
    const tunnel = { host: 'localhost', port: destination.port, tunnel: true };
    const tunnels = await tenant.application({ permissions: ['proxy:invoke'], egress: [tunnel] });
    const file = fileOf('tunnels.key', tunnels);
    const authority = called.environment['STRONGROOM_OUTBOUND_CA'] ?? '';
    const { code, stdout, stderr } = await runAgent(
      ['sh', '-c', 'curl -sS "$0" -d sent; echo "$SSL_CERT_FILE"', url],
      { CURL_CA_BUNDLE: authority },
      ['--key-file', file],
    );
    assert.deepEqual([code, stdout], [0, ' sent\n'], stderr);
  });

  test('is the only one with --only, and the key is out of reach', {
    skip: !hasNamespaces || !canStart,
  }, async (t) => {
    const reach = `
      const { connect } = require('node:net');
      const { readFileSync, readdirSync } = require('node:fs');
      const [keyFile, ...ports] = process.argv.slice(1);
      const reached = (port) => new Promise((resolve) => {
        connect(Number(port), '127.0.0.1', () => resolve('reached')).on('error', (error) => resolve(error.code));
      });
      (async () => {
        const direct = await Promise.all(ports.map(reached));
        const processes = readdirSync('/proc').filter((name) => /^\\d+$/.test(name)).length;
        const response = await fetch(process.env.URL_OF_TEST, { headers: { authorization: process.env.API_KEY } });
        console.log(JSON.stringify([readFileSync(keyFile, 'utf8'), direct, processes < 5, response.status]));
        process.exit(6);
      })();`;
    const ports = [
      new URL(vault.url).port,
      environment['STRONGROOM_EGRESS_ADDRESS']?.split(':')[1] ?? '',
    ];
    const words = ['node', '-e', reach, keyFile, ...ports, String(destination.port)];
    received();
    const { code, stdout, stderr } = await runOnly(words, { URL_OF_TEST: url });
    assert.equal(code, 6, stderr);
    const refused = ['ECONNREFUSED', 'ECONNREFUSED', 'ECONNREFUSED'];
    assert.deepEqual(JSON.parse(stdout), ['', refused, true, 200]);
    assert.equal(headerOf(received()[0]?.headers ?? [], 'authorization'), secret);
    const both = await runAgent(printing('1'), {}, [...options, '--only', '--direct-loopback']);
    assert.deepEqual([both.code, both.stdout], [2, '']);
    const { command } = await beginWaiting(t, only);
    process.kill(Number(command.pid), 'SIGTERM');
    const [status, signal] = await once(command, 'exit');
    assert.deepEqual([status, signal], [143, null]);
    assert.deepEqual(left(), []);
  });

  test('ends with the program, if --only is given and the command is killed', {
    skip: !hasNamespaces || !canStart,
  }, async (t) => {
    const { command } = await beginWaiting(t, only);
    const inside = descendants(command.pid);
    t.after(() => inside.forEach((pid) => void killIfAlive(pid)));
    assert.ok(inside.length >= 3, String(inside));
    process.kill(Number(command.pid), 'SIGKILL');
    await untilSo(
      () => !inside.some(isRunning),
      () => `${inside.filter(isRunning)} of ${inside} run without the command`,
    );
    for (const name of left()) rmSync(join(temporary, name), { recursive: true });
  });

  test('is not the terminal of a shell: with --only, the program has none to type commands into', {
    skip: !hasNamespaces || !canStart || !hasTerminals,
  }, async () => {
    const look = `
      const { openSync, readdirSync, readFileSync } = require('node:fs');
      const terminals = readdirSync('/proc').filter((name) => /^\\d+$/.test(name)).map((id) =>
        readFileSync('/proc/' + id + '/stat', 'utf8').split(') ')[1].split(' ')[4]);
      let opened = 'opened';
      try { openSync('/dev/tty'); } catch (error) { opened = error.code; }
      process.on('SIGINT', () => process.exit(opened === 'ENXIO' ? 7 : 8));
      setInterval(() => {}, 1000);
      console.log('ready', process.stdin.isTTY, opened, [...new Set(terminals)].join());`;
    assert.match(await interruptAtTerminal(only, look), /ready true ENXIO 0\s[\s\S]*ended with 7/);
    assert.match(await interruptAtTerminal(options, look), /ready true opened [\s\S]*ended with 8/);
  });

  test('is not begun with --only by root, whose files are those of the machine', {
    skip: process.geteuid?.() !== 0,
  }, async () => {
    const { code, stdout, stderr } = await runAgent(printing('1'), {}, only);
    assert.deepEqual([code, stdout], [2, '']);
    assert.match(stderr, /--only does not confine a program of root; run it as another user/);
  });

  test('is not begun with --only where the system has no namespaces', {
    skip: hasNamespaces || !canStart,
  }, async () => {
    const { code, stdout, stderr } = await runOnly(printing('1'));
    assert.deepEqual([code, stdout], [2, '']);
    assert.match(stderr, /--only needs namespaces of Linux .* which do not work here: /);
  });
});

const left = () => readdirSync(temporary).filter((name) => name.startsWith('strongroom-agent-'));

/** Git's own server, as web servers start it (RFC 3875), for who signs in with the secret. */
function gitServer(repositories: string): Behavior {
  return async ({ request, response, received: all }) => {
    const { body } = await all;
    const basic = `Basic ${Buffer.from(`agent:${secret}`).toString('base64')}`;
    if (request.headers.authorization !== basic) {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end();
      return;
    }
    const { pathname, search } = new URL(request.url ?? '', url);
    const { status, stdout, stderr } = spawnSync('git', ['http-backend'], {
      input: body,
      maxBuffer: 10_000_000,
      env: {
        PATH: process.env['PATH'],
        GIT_PROJECT_ROOT: repositories,
        GIT_HTTP_EXPORT_ALL: '1',
        REMOTE_USER: 'agent',
        REQUEST_METHOD: request.method,
        PATH_INFO: pathname,
        QUERY_STRING: search.slice(1),
        CONTENT_TYPE: request.headers['content-type'] ?? '',
        CONTENT_LENGTH: String(body.length),
        HTTP_CONTENT_ENCODING: String(request.headers['content-encoding'] ?? ''),
        GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
      },
    });
    assert.equal(status, 0, String(stderr));
    const end = stdout.indexOf('\r\n\r\n');
    const head = stdout.subarray(0, end).toString().split('\r\n');
    for (const line of head) {
      const [name = '', value = ''] = line.split(': ');
      if (name === 'Status') response.statusCode = Number.parseInt(value, 10);
      else response.setHeader(name, value);
    }
    response.end(stdout.subarray(end + 4));
  };
}

/** As a plain web server has one. */
function newRepository(): string {
  const [work, bare] = [join(folder, 'work'), join(folder, 'bare')];
  const env = { PATH: process.env['PATH'], HOME: folder, GIT_CONFIG_NOSYSTEM: '1' };
  const git = (...words: readonly string[]) => execFileSync('git', words, { env, stdio: 'pipe' });
  git('init', work);
  writeFileSync(join(work, 'a.txt'), 'of the repository');
  git('-C', work, 'add', '.');
  git('-C', work, '-c', 'user.name=a', '-c', 'user.email=a@b.example', 'commit', '-m', 'a');
  git('clone', '--bare', work, bare);
  git('-C', bare, 'update-server-info');
  return bare;
}

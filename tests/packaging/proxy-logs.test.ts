/** No proxy that is configured as we ship it writes a path or a query, whatever becomes of the request. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { connect } from 'node:tls';
import { writeCertificate } from '../support/certificate.ts';
import { engineOf } from '../support/engines.ts';
import { untilAccepts } from '../support/poolers.ts';
import { environmentOf, spawnVault } from '../support/process.ts';
import { root } from '../support/source.ts';
import { freePort, temporaryDirectory } from '../support/temporary.ts';

/** The id of a token, and what is searched for. */
const number = '4242424242424242';

/** More than the vault and both proxies accept in headers, and in a body. */
const headerBytes = 40_000;
const bodyBytes = 2 * 1024 * 1024;

const target = `/tokens/${number}?metadata.card=${number}`;
const headers = `Host: vault.example.com\r\nReferer: https://a.example/${number}\r\nUser-Agent: ${number}\r\n`;
const long = number.repeat(headerBytes / number.length);
const close = 'Connection: close\r\n\r\n';

/** Each is the whole of what a client sends before it waits for the end of the connection. */
const requests: Readonly<Record<string, string>> = {
  'without a key': `GET ${target} HTTP/1.1\r\n${headers}${close}`,
  'to a route that is not there': `GET /none${target} HTTP/1.1\r\n${headers}${close}`,
  'with a path that climbs': `GET /../..${target} HTTP/1.1\r\n${headers}${close}`,
  'with a body that is too large': `POST ${target} HTTP/1.1\r\n${headers}Content-Length: ${bodyBytes}\r\n${close}`,
  'with a path that is too long': `GET ${target}${long} HTTP/1.1\r\n${headers}${close}`,
  'with headers that are too large': `GET ${target} HTTP/1.1\r\n${headers}A: ${long}\r\n${close}`,
  'with a header that is none': `GET ${target} HTTP/1.1\r\n${headers}${number}\r\n${close}`,
  'with a method that is none': `${number} ${target} HTTP/1.1\r\n${headers}${close}`,
  'with a version that is none': `GET ${target} HTTP/${number}\r\n${headers}${close}`,
  'with a byte that is none': `GET ${target}\u0001 HTTP/1.1\r\n${headers}${close}`,
  'with two lengths': `POST ${target} HTTP/1.1\r\n${headers}Content-Length: 1\r\nContent-Length: 2\r\n${close}`,
  'with an absolute target': `GET https://${number}.example${target} HTTP/1.1\r\n${headers}${close}`,
  'for another host': `GET ${target} HTTP/1.1\r\nHost: ${number}.example\r\n${close}`,
  'whose headers do not end': `GET ${target} HTTP/1.1\r\n${headers}`,
  'whose body does not end': `POST ${target} HTTP/1.1\r\n${headers}Content-Length: 10\r\n${close}${number.slice(0, 4)}`,
};

interface Place {
  readonly directory: string;
  readonly port: number;
  /** Of the vault, or of what is in its place. */
  readonly upstream: string;
}

interface Proxy {
  readonly program: string;
  /** Writes the configuration that we ship, with the addresses, files and short times of a test. */
  readonly configure: (place: Place) => readonly string[];
}

const shipped = (name: string) => readFileSync(join(root, 'deploy', 'proxies', name), 'utf8');

/** Each replacement must be one, so that a change of what we ship is noticed. */
function replaced(text: string, by: readonly (readonly [RegExp, string])[]): string {
  return by.reduce((changed, [form, value]) => {
    assert.match(changed, form);
    return changed.replace(form, value);
  }, text);
}

const proxies: readonly Proxy[] = [
  {
    program: 'nginx',
    configure: ({ directory, port, upstream }) => {
      const server = replaced(shipped('nginx.conf'), [
        [/server 10\.0\.0\.11:8080/, `server ${upstream}`],
        [/ {2}server 10\.0\.0\.12:8080.*\n/, ''],
        [/listen 443 /, `listen 127.0.0.1:${port} `],
        [/ {2}listen \[::\]:443 .*\n/, ''],
        [/\/etc\/nginx\/tls\/vault\.crt/, join(directory, 'tls.crt')],
        [/\/etc\/nginx\/tls\/vault\.key/, join(directory, 'tls.key')],
        [/\/var\/log\/nginx\//, `${directory}/`],
        [/client_body_timeout +35s/, 'client_header_timeout 1s; client_body_timeout 1s'],
        [/proxy_read_timeout +75s/, 'proxy_read_timeout 1s'],
      ]);
      const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
        (name) => `${name}_temp_path ${directory}/${name};`,
      );
      const main = join(directory, 'main.conf');
      writeFileSync(join(directory, 'server.conf'), server);
      // The log of the main context is open for everything: what a request causes must not get there.
      writeFileSync(
        main,
        `daemon off; master_process off; pid ${directory}/pid; error_log ${directory}/main.log info;
events {}
http { access_log off; ${temporary.join(' ')} include ${directory}/server.conf; }\n`,
      );
      return ['-p', directory, '-e', join(directory, 'start.log'), '-c', main];
    },
  },
  {
    program: 'haproxy',
    configure: ({ directory, port, upstream }) => {
      const pem = ['tls.crt', 'tls.key'].map((name) => readFileSync(join(directory, name), 'utf8'));
      writeFileSync(join(directory, 'vault.pem'), pem.join(''));
      const config = join(directory, 'haproxy.cfg');
      writeFileSync(
        config,
        replaced(shipped('haproxy.cfg'), [
          [
            /bind :443 ssl crt \/etc\/haproxy\/vault\.pem/,
            `bind 127.0.0.1:${port} ssl crt ${directory}/vault.pem`,
          ],
          [/server vault1 10\.0\.0\.11:8080\n/, `server vault1 ${upstream}\n`],
          [/ {2}server vault2 10\.0\.0\.12:8080\n/, ''],
          // A server that does not pass its checks gets no request, and here it shall get them.
          [/ {2}default-server check .*\n/, ''],
          [/timeout http-request 10s/, 'timeout http-request 1s'],
          [/timeout server 75s/, 'timeout server 1s'],
          [/timeout client 75s/, 'timeout client 2s'],
        ]),
      );
      return ['-db', '-f', config];
    },
  },
];

const upstreams: Readonly<Record<string, (t: TestContext) => Promise<Upstream>>> = {
  'a vault': startVaultBehind,
  'a server that never responds': startSilent,
  'no server': async () => ({ address: `127.0.0.1:${await freePort()}`, output: () => '' }),
};

interface Upstream {
  readonly address: string;
  /** All that it has written. */
  readonly output: () => string;
}

for (const { program, configure } of proxies) {
  const isAbsent = spawnSync(program, ['-v']).error !== undefined;
  const skip = isAbsent && `this machine has no ${program}`;
  for (const [title, startUpstream] of Object.entries(upstreams)) {
    test(`${program} before ${title} writes a line for each request, without its path or query`, {
      skip,
    }, async (t) => {
      const directory = temporaryDirectory(t);
      const { cert } = writeCertificate(directory);
      const upstream = await startUpstream(t);
      const port = await freePort();
      const flags = configure({ directory, port, upstream: upstream.address });
      const proxy = startProxy(t, program, flags);
      await untilAccepts(port);
      const all = Object.entries(requests).map(([kind, text]) =>
        exchange(port, cert, text).catch((error) => assert.fail(`${kind}: ${error}`)),
      );
      await Promise.all(all);
      await stopProxy(proxy);
      const files = globSync('**/*.log', { cwd: directory });
      const logs = files.map((name) => readFileSync(join(directory, name), 'utf8'));
      const written = [proxy.output(), ...logs].join('\n');
      for (const part of [number, '/tokens']) assert.equal(linesWith(written, part), '');
      // The vault writes the pattern of a route in place of its path.
      assert.equal(linesWith(upstream.output(), number), '');
      const lines = written.split('\n').filter((line) => /^127\.0\.0\.1 \[/.test(line));
      assert.ok(lines.length >= Object.keys(requests).length - 1, written);
      const expected = title === 'a vault' ? / GET 401 / : / GET 50[234] /;
      assert.ok(
        lines.some((line) => expected.test(line)),
        written,
      );
    });
  }
}

const withoutNginx = spawnSync('nginx', ['-v']).error !== undefined;

test('nginx sends a request that may have changed something to one vault alone, and a read to the next', {
  skip: withoutNginx && 'this machine has no nginx',
}, async (t) => {
  const directory = temporaryDirectory(t);
  const { cert } = writeCertificate(directory);
  const received: string[] = [];
  const closing = async () => {
    const server = createServer((socket) => {
      socket.on('error', () => socket.destroy());
      socket.once('data', (bytes) => {
        received.push(bytes.toString().split(' ', 1).join());
        socket.destroy();
      });
    });
    return addressOf(t, server);
  };
  // No server is left out for having failed.
  const counted = 'max_fails=0;';
  const upstream = `${await closing()} ${counted}\n  server ${await closing()} ${counted} #`;
  const port = await freePort();
  const [nginx] = proxies;
  assert.ok(nginx);
  const proxy = startProxy(t, nginx.program, nginx.configure({ directory, port, upstream }));
  await untilAccepts(port);
  for (const path of ['/tokens/a', '/proxy/a']) {
    for (const method of ['GET', 'POST', 'PATCH', 'PUT', 'DELETE']) {
      received.length = 0;
      await exchange(port, cert, `${method} ${path} HTTP/1.1\r\n${headers}${close}`);
      const servers = method === 'GET' ? 2 : 1;
      assert.deepEqual(received, Array(servers).fill(method), `${method} ${path}`);
    }
  }
  await stopProxy(proxy);
});

const linesWith = (text: string, part: string) =>
  text
    .split('\n')
    .filter((line) => line.includes(part))
    .join('\n');

async function startVaultBehind(t: TestContext): Promise<Upstream> {
  const place = await engineOf('sqlite').place(t);
  const all = { STRONGROOM_ACCESS_LOG: 'on', STRONGROOM_LOG_LEVEL: 'debug' };
  const vault = await spawnVault(t, environmentOf(place, all));
  return { address: new URL(vault.url).host, output: vault.output };
}

async function startSilent(t: TestContext): Promise<Upstream> {
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy()).resume();
  });
  return { address: await addressOf(t, server), output: () => '' };
}

async function addressOf(t: TestContext, server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => void server.close());
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  return `127.0.0.1:${address.port}`;
}

interface RunningProxy {
  readonly child: ChildProcess;
  readonly output: () => string;
}

function startProxy(t: TestContext, program: string, flags: readonly string[]): RunningProxy {
  const child = spawn(program, flags, { stdio: ['ignore', 'pipe', 'pipe'] });
  const chunks: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => chunks.push(chunk));
  }
  const kill = () => void child.kill('SIGKILL');
  process.once('exit', kill);
  t.after(kill);
  return { child, output: () => Buffer.concat(chunks).toString() };
}

/** A quick stop, after which all that was logged is in its place. */
async function stopProxy({ child }: RunningProxy): Promise<void> {
  const closed = once(child, 'close');
  child.kill('SIGTERM');
  await closed;
}

/** Sends this and waits until the other side has ended the connection. */
async function exchange(port: number, ca: string, text: string): Promise<void> {
  const socket = connect({ host: '127.0.0.1', port, ca, servername: 'localhost' });
  await once(socket, 'secureConnect');
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  // A proxy that refuses a request before it has read all of it resets the connection.
  socket.on('error', () => socket.destroy());
  socket.resume();
  socket.write(text, 'latin1');
  await closed;
}

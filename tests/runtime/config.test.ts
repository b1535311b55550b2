/** The configuration of threads, of outbound calls and of bank verification. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { newAuthority } from '../../src/keys/temporary-authority.ts';
import { readConfig, threadsMax } from '../../src/runtime/config/config.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const read = (given: Readonly<Record<string, string>>) =>
  readConfig(
    Object.fromEntries(Object.entries(given).map(([name, value]) => [`STRONGROOM_${name}`, value])),
  );

const url = 'https://bank.example/verify';

test('without a variable nothing is allowed, configured or cached', () => {
  const { outbound, enrichments } = read({});
  assert.equal(outbound.allow.size, 0);
  assert.deepEqual(outbound.authorities, []);
  assert.deepEqual(enrichments, {
    routingDirectory: undefined,
    binTable: undefined,
    bankHost: undefined,
    strict: false,
    cacheMs: 0,
  });
});

test('a service has a request, an answer and limits of its own accord', () => {
  const { bankHost } = read({ BANK_PROVIDER_URL: url }).enrichments;
  assert.deepEqual(bankHost, {
    url: new URL(url).href,
    headers: {},
    request: {
      country_code: '{{ country_code }}',
      routing_number: '{{ routing_number }}',
      account_number: '{{ account_number }}',
    },
    answer: '{{ body.status }}',
    timeoutMs: 5000,
    attemptsMax: 3,
  });
});

test('allowed hosts are kept as they stand in URLs', () => {
  const { outbound } = read({
    OUTBOUND_ALLOW: 'Bank.Internal:8443, 10.0.0.7:80,[FD00::0:1]:443',
  });
  assert.deepEqual([...outbound.allow], ['bank.internal:8443', '10.0.0.7:80', '[fd00::1]:443']);
});

test('authorities are read from a file, each by itself', (t) => {
  const file = join(temporaryDirectory(t), 'ca.pem');
  const [one, two] = [newAuthority().cert, newAuthority().cert];
  writeFileSync(file, `Subject: one\n${one}\n# two\r\n${two}`);
  assert.deepEqual(read({ OUTBOUND_CA: file }).outbound.authorities, [one.trim(), two.trim()]);
});

test('a file that holds no valid certificate is not taken for authorities', (t) => {
  const file = join(temporaryDirectory(t), 'xyzzy.pem');
  const { cert } = newAuthority();
  const message = 'STRONGROOM_OUTBOUND_CA names a file that does not hold certificates in PEM.';
  const wrong = ['', 'xyzzy', cert.replace(/M/g, 'N'), `${cert}${cert.slice(0, -30)}`];
  for (const text of wrong) {
    writeFileSync(file, text);
    assert.throws(() => read({ OUTBOUND_CA: file }), { name: 'ConfigError', message });
  }
});

test('http is for allowed hosts alone', () => {
  const plain = 'http://bank.internal:8080/verify';
  const { bankHost } = read({
    BANK_PROVIDER_URL: plain,
    OUTBOUND_ALLOW: 'bank.internal:8080',
  }).enrichments;
  assert.equal(bankHost?.url, plain);
});

test('a sink of checkpoints is a path or an address that may be called', () => {
  assert.equal(read({}).checkpointSink, undefined);
  assert.deepEqual(read({ CHECKPOINT_SINK: './a b/c' }).checkpointSink, { file: './a b/c' });
  const address = 'https://anchor.example/a?b=c';
  assert.deepEqual(read({ CHECKPOINT_SINK: address }).checkpointSink, { url: new URL(address) });
  const plain = 'http://anchor.internal:80/';
  const allowed = read({ CHECKPOINT_SINK: plain, OUTBOUND_ALLOW: 'anchor.internal:80' });
  assert.deepEqual(allowed.checkpointSink, { url: new URL(plain) });
});

test('the port of the database is known, that of the embedded engine is none', () => {
  const portsOf = (url: string) => read({ DATABASE_URL: url }).outbound.databasePorts;
  assert.deepEqual(read({}).outbound.databasePorts, []);
  assert.deepEqual(portsOf('postgres://db.example/vault'), [5432]);
  assert.deepEqual(portsOf('postgres://a:b@db.example:6432/vault'), [6432]);
  assert.deepEqual(portsOf('postgres://one:1,two/vault'), [1, 5432]);
});

test('a database beyond loopback is reached over verified TLS', () => {
  const urlOf = (url: string, more = {}) => read({ DATABASE_URL: url, ...more }).databaseUrl;
  const modes = ['', '?sslmode=require', '?sslmode=prefer&uselibpqcompat=true', '?ssl=0'];
  for (const mode of modes) {
    const url = urlOf(`postgres://a:b%40c@db.example:6432/vault${mode}`);
    assert.equal(url, 'postgres://a:b%40c@db.example:6432/vault?sslmode=verify-full');
  }
  const remote = [
    'postgres://10.0.0.7/vault',
    'postgres://128.0.0.1/vault',
    'postgres://[fd00::1]/vault',
    'postgres://localhost.example/vault',
    'postgres://localhost/vault?host=db.example',
    'postgres:///vault?host=db.example',
    'postgres://a@/vault?host=db.example',
    'postgres://localhost,db.example:6432/vault',
  ];
  for (const url of remote) assert.match(urlOf(url) ?? '', /[?&]sslmode=verify-full$/, url);
  const local = [
    'postgres://localhost/vault',
    'postgres://a:b@127.0.0.1:6432/vault?application_name=x',
    'postgres://127.255.0.1/vault',
    'postgresql://[::1]/vault',
    'postgres:///vault',
    'postgres://%2Frun%2Fpostgresql/vault',
    'postgres://a@/vault?host=/run/postgresql',
    'postgres://db.example/vault?host=127.0.0.1',
    'postgres://localhost/vault?sslmode=disable',
    'postgres://localhost,127.0.0.1:5433/vault?target_session_attrs=primary',
  ];
  for (const url of local) assert.equal(urlOf(url), url);
});

test('STRONGROOM_DATABASE_TLS=off takes the URL at its word', () => {
  for (const mode of ['', '?sslmode=disable', '?sslmode=no-verify', '?sslmode=require']) {
    const url = `postgres://db.example/vault${mode}`;
    assert.equal(read({ DATABASE_URL: url, DATABASE_TLS: 'off' }).databaseUrl, url);
  }
});

test('a wrong value is refused by the name of its variable, and not repeated', () => {
  const wrong: readonly (readonly [string, string])[] = [
    ['OUTBOUND_ALLOW', 'xyzzy'],
    ['OUTBOUND_CA', './xyzzy.pem'],
    ['OUTBOUND_ALLOW', 'https://xyzzy:443'],
    ['OUTBOUND_ALLOW', 'a:1,xyzzy:99999'],
    ['DATABASE_URL', 'mysql://xyzzy'],
    ['DATABASE_URL', 'postgres://xyzzy.example/vault?sslmode=disable'],
    ['DATABASE_URL', 'postgres://xyzzy.example/vault?sslmode=no-verify'],
    ['DATABASE_URL', 'postgres://localhost,xyzzy.example/vault?sslmode=disable'],
    ['DATABASE_URL', 'postgres://localhost/vault?target_session_attrs=xyzzy'],
    ['DATABASE_URL', 'postgres://one,two:xyzzy/vault'],
    ['DATABASE_URL', 'postgres://xyzzy,xyzzy/vault'],
    ['BOOTSTRAP_TENANT', ' xyzzy'],
    ['CHECKPOINT_SINK', 'http://xyzzy.example/'],
    ['CHECKPOINT_SINK', 'ftp://xyzzy.example/'],
    ['CHECKPOINT_SINK', 'https://xyzzy@anchor.example/'],
    ['BANK_PROVIDER_URL', 'xyzzy'],
    ['BANK_PROVIDER_URL', 'http://xyzzy.example/'],
    ['BANK_PROVIDER_URL', 'https://xyzzy@bank.example/'],
    ['BANK_PROVIDER_HEADERS', 'xyzzy'],
    ['BANK_PROVIDER_HEADERS', '["xyzzy"]'],
    ['BANK_PROVIDER_HEADERS', '{"x y": "xyzzy"}'],
    ['BANK_PROVIDER_HEADERS', '{"x": "xyzzy\\n"}'],
    ['BANK_PROVIDER_HEADERS', '{"x": 1}'],
    ['BANK_PROVIDER_REQUEST', '{xyzzy}'],
    ['BANK_PROVIDER_REQUEST', '{"a": ["{{ xyzzy"]}'],
    ['BANK_PROVIDER_ANSWER', '{{ a | xyzzy }}'],
    ['BANK_PROVIDER_TIMEOUT_MS', '99'],
    ['BANK_PROVIDER_TIMEOUT_MS', '30001'],
    ['BANK_PROVIDER_ATTEMPTS', '0'],
    ['BANK_PROVIDER_ATTEMPTS', '1.5'],
    ['BANK_PROVIDER_STRICT', 'yes'],
    ['BANK_PROVIDER_CACHE_SECONDS', '86401'],
  ];
  for (const [name, value] of wrong) {
    assert.throws(
      () => read({ BANK_PROVIDER_URL: url, [name]: value }),
      (error) => {
        assert.ok(error instanceof Error);
        assert.equal(error.name, 'ConfigError');
        assert.match(error.message, new RegExp(`^STRONGROOM_${name} `), value);
        assert.doesNotMatch(error.message, /xyzzy/);
        return true;
      },
      `${name}=${value}`,
    );
  }
});

test('requests are answered by one thread to sixty-four', () => {
  for (const text of ['1', '2', '64']) assert.equal(read({ THREADS: text }).threads, Number(text));
  for (const text of ['0', '65', '1.5', 'two', '-1']) {
    assert.throws(() => read({ THREADS: text }), {
      name: 'ConfigError',
      message: 'STRONGROOM_THREADS must be a whole number from 1 to 64.',
    });
  }
  const spare = process.platform === 'linux' ? availableParallelism() - 2 : 1;
  assert.equal(read({}).threads, Math.min(threadsMax, Math.max(1, spare)));
});

test('metrics have an address of a host and a port', () => {
  const addressOf = (text: string) => read({ METRICS_ADDRESS: text }).metricsAddress;
  assert.equal(read({}).metricsAddress, undefined);
  assert.deepEqual(addressOf('127.0.0.1:9464'), { host: '127.0.0.1', port: 9464 });
  assert.deepEqual(addressOf('[::1]:65535'), { host: '::1', port: 65_535 });
  assert.deepEqual(addressOf('metrics.internal:0'), { host: 'metrics.internal', port: 0 });
  for (const wrong of ['9464', ':9464', '127.0.0.1', '::1:9464', '127.0.0.1:65536', 'a b:1']) {
    const message = /^STRONGROOM_METRICS_ADDRESS must be an address such as 127\.0\.0\.1:9464/;
    assert.throws(() => addressOf(wrong), { name: 'ConfigError', message }, wrong);
  }
});

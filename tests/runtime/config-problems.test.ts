/** A configuration that is wrong: every problem at once, unknown variables, and files in each other's place. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { rootKeyVariables } from '../../src/keys/root/sources.ts';
import { readConfig } from '../../src/runtime/config/config.ts';
import { writeCertificate } from '../support/certificate.ts';
import { runCommand } from '../support/process.ts';
import { temporaryDirectory } from '../support/temporary.ts';

function problemsOf(given: Readonly<Record<string, string>>): readonly string[] {
  try {
    readConfig(given);
  } catch (error) {
    assert.ok(error instanceof Error && error.name === 'ConfigError', String(error));
    return error.message.split('\n').map((line) => line.trim());
  }
  return [];
}

test('every problem is named at once, each by its variable, and none twice', () => {
  const problems = problemsOf({
    STRONGROOM_PORT: '70000',
    STRONGROOM_HOST: '0.0.0.0',
    STRONGROOM_THREADS: 'many',
    STRONGROOM_LOG_LEVEL: 'loud',
    STRONGROOM_BOOTSTRAP_KEY: 'short',
    STRONGROOM_BOOTSTRAP_TENANT_TYPE: 'trial',
    STRONGROOM_OUTBOUND_ALLOW: 'nonsense',
    STRONGROOM_CHECKPOINT_SINK: 'https://anchor.example/',
    STRONGROOM_BANK_PROVIDER_URL: 'https://bank.example/',
    STRONGROOM_BANK_PROVIDER_ATTEMPTS: '9',
    STRONGROOM_PROT: '80',
    STRONGROOM_ACCESS_LOG: 'true',
    STRONGROOM_METRICS_ADDRESS: '9464',
    STRONGROOM_OTLP_ENDPOINT: 'http://user@collector.example:4318',
  });
  const named = problems.slice(1).map((line) => line.split(' ')[0]);
  assert.equal(problems[0], `${named.length} problems in the configuration:`);
  assert.deepEqual(named.sort(), [
    'STRONGROOM_ACCESS_LOG',
    'STRONGROOM_BANK_PROVIDER_ATTEMPTS',
    'STRONGROOM_BOOTSTRAP_KEY',
    'STRONGROOM_BOOTSTRAP_TENANT_TYPE',
    'STRONGROOM_HOST',
    'STRONGROOM_LOG_LEVEL',
    'STRONGROOM_METRICS_ADDRESS',
    'STRONGROOM_OTLP_ENDPOINT',
    'STRONGROOM_OUTBOUND_ALLOW',
    'STRONGROOM_PORT',
    'STRONGROOM_PROT',
    'STRONGROOM_THREADS',
  ]);
});

test('STRONGROOM_DATABASE_DISTRIBUTE is citus or off, and needs a PostgreSQL', () => {
  const name = 'STRONGROOM_DATABASE_DISTRIBUTE';
  const url = { STRONGROOM_DATABASE_URL: 'postgres://127.0.0.1/vault' };
  assert.match(
    problemsOf({ [name]: 'citus' }).join(),
    /DISTRIBUTE is for PostgreSQL.*set STRONGROOM_DATABASE_URL/,
  );
  assert.match(problemsOf({ ...url, [name]: 'yes' }).join(), /DISTRIBUTE must be .*citus/);
  assert.deepEqual(problemsOf({ ...url, [name]: 'citus' }), []);
  assert.deepEqual(problemsOf({ [name]: 'off' }), []);
});

test('an unknown variable is refused with the one that was probably meant', () => {
  const meant = [
    ['STRONGROOM_RATE_LIMIT', 'STRONGROOM_RATE_LIMITS'],
    ['STRONGROOM_DATABSE_URL', 'STRONGROOM_DATABASE_URL'],
    ['STRONGROOM_TLS_CERTIFICATE', 'STRONGROOM_TLS_CERT'],
  ] as const;
  for (const [name, other] of meant) {
    assert.deepEqual(problemsOf({ [name]: 'xyzzy' }), [
      `${name} is not a variable of Strongroom; did you mean ${other}?`,
    ]);
  }
  const far = problemsOf({ STRONGROOM_COLOR_OF_THE_DOOR_IN_THE_HALL: 'xyzzy' });
  assert.deepEqual(far, [
    'STRONGROOM_COLOR_OF_THE_DOOR_IN_THE_HALL is not a variable of Strongroom.',
  ]);
});

test('what is empty, of somebody else, of the client commands or set by Kubernetes is no problem', () => {
  const others = {
    STRONGROOM_PROT: '',
    OTHER_STRONGROOM_PORT: 'x',
    STRONGROOM_KEY: 'key_test_pvt_x',
    STRONGROOM_SERVICE_HOST: '10.0.0.1',
    STRONGROOM_SERVICE_PORT_HTTP: '8080',
    STRONGROOM_PORT_8080_TCP_ADDR: '10.0.0.1',
    STRONGROOM_DB_PORT: 'tcp://10.0.0.2:5432',
    STRONGROOM_DB_PORT_5432_TCP: 'tcp://10.0.0.2:5432',
  };
  assert.deepEqual(problemsOf(others), []);
  const [port] = problemsOf({ STRONGROOM_PORT: 'tcp://10.0.0.1:8080' });
  assert.match(port ?? '', /^STRONGROOM_PORT must be a port .* set enableServiceLinks to false\.$/);
});

test('each variable of a document is known, and each known one is in the documents', () => {
  const root = join(import.meta.dirname, '..', '..');
  const files = execFileSync('git', ['ls-files', 'README.md', 'docs/*.md'], { cwd: root });
  const texts = String(files)
    .trim()
    .split('\n')
    .map((file) => readFileSync(join(root, file), 'utf8'));
  const documented = new Set(
    texts.join('\n').match(/\bSTRONGROOM_[A-Z][A-Z_]*[A-Z]\b(?! is not)/g),
  );
  const source = readFileSync(join(root, 'src/runtime/config/variables.ts'), 'utf8');
  const own = [...source.matchAll(/^ {2}'([A-Z_]+)',$/gm)].map(([, name]) => name);
  const known = [...new Set([...own, ...rootKeyVariables])].map((name) => `STRONGROOM_${name}`);
  assert.ok(known.length > 30);
  assert.deepEqual([...documented].filter((name) => !known.includes(name)).sort(), []);
  const texted = texts.join('\n');
  const last = (name: string) => name.replace(/^STRONGROOM_(?:BANK_PROVIDER|BOOTSTRAP)_/, '');
  assert.deepEqual(
    known.filter((name) => !documented.has(name) && !texted.includes(last(name))),
    [],
  );
});

test('certificate and key that are swapped, wrong or not a pair are named', (t) => {
  const { certFile, keyFile, cert } = writeCertificate(temporaryDirectory(t));
  const other = writeCertificate(temporaryDirectory(t));
  const directory = temporaryDirectory(t);
  const fileOf = (name: string, text: string) => {
    writeFileSync(join(directory, name), text);
    return join(directory, name);
  };
  const text = fileOf('text', 'xyzzy');
  const broken = fileOf(
    'broken',
    '-----BEGIN CERTIFICATE-----\nxyzzy\n-----END CERTIFICATE-----\n',
  );
  const locked = fileOf('locked', '-----BEGIN ENCRYPTED PRIVATE KEY-----\nxyzzy\n');
  const leafLast = fileOf('leaf-last', readFileSync(other.certFile, 'utf8') + cert);
  const chain = fileOf('chain', cert + readFileSync(other.certFile, 'utf8'));
  const cases: readonly (readonly [string, string, RegExp])[] = [
    [keyFile, certFile, /^STRONGROOM_TLS_CERT names the private key, and STRONGROOM_TLS_KEY the/],
    [keyFile, keyFile, /^STRONGROOM_TLS_CERT names a file with a private key; the certificate/],
    [certFile, certFile, /^STRONGROOM_TLS_KEY names a file with a certificate; the private key/],
    [certFile, other.keyFile, /^STRONGROOM_TLS_KEY names a key that does not belong to the/],
    [
      leafLast,
      keyFile,
      /^STRONGROOM_TLS_CERT names a chain in which the certificate of the server/,
    ],
    [certFile, locked, /^STRONGROOM_TLS_KEY names a private key that needs a passphrase/],
    [text, keyFile, /^STRONGROOM_TLS_CERT names a file that is not a certificate in PEM/],
    [broken, keyFile, /^STRONGROOM_TLS_CERT names a file that is not a certificate in PEM/],
    [certFile, text, /^STRONGROOM_TLS_KEY names a file that is not a private key in PEM/],
    [join(directory, 'none'), keyFile, /^STRONGROOM_TLS_CERT names a file that cannot be read/],
    [certFile, join(directory, 'none'), /^STRONGROOM_TLS_KEY names a file that cannot be read/],
  ];
  for (const [certificate, key, says] of cases) {
    const problems = problemsOf({
      STRONGROOM_TLS_CERT: certificate,
      STRONGROOM_TLS_KEY: key,
      STRONGROOM_HOST: '0.0.0.0',
    });
    assert.equal(problems.length, 1, problems.join('\n'));
    assert.match(problems[0] ?? '', says);
    assert.doesNotMatch(problems[0] ?? '', /xyzzy|BEGIN/);
  }
  for (const certificate of [certFile, chain]) {
    const pair = { STRONGROOM_TLS_CERT: certificate, STRONGROOM_TLS_KEY: keyFile };
    assert.deepEqual(problemsOf(pair), []);
  }
});

test('the command prints them all, ends with 1, and has made nothing', async (t) => {
  const data = join(temporaryDirectory(t), 'data');
  const { code, stdout, stderr } = await runCommand(['serve'], {
    STRONGROOM_DATA_DIR: data,
    STRONGROOM_PORT: 'x',
    STRONGROOM_THREAD: '2',
  });
  assert.equal(code, 1);
  assert.equal(stdout, '');
  assert.deepEqual(stderr.trimEnd().split('\n'), [
    'strongroom serve: 2 problems in the configuration:',
    '  STRONGROOM_THREAD is not a variable of Strongroom; did you mean STRONGROOM_THREADS?',
    '  STRONGROOM_PORT must be a port from 0 to 65535.',
  ]);
  assert.equal(existsSync(data), false);
});

test('an identity provider needs all that it takes to sign in, and is at https or on this machine', (t) => {
  const directory = temporaryDirectory(t);
  const fileOf = (name: string, text: string) => {
    writeFileSync(join(directory, name), text);
    return join(directory, name);
  };
  const application = '2f1f4a6e-6d8a-4b0e-9a51-1f0c3a7f6b11';
  const rule = { value: 'support', tenant: 'default', application };
  const complete = {
    STRONGROOM_PUBLIC_URL: 'https://vault.example.com',
    STRONGROOM_OIDC_ISSUER: 'https://login.example.com/realms/one',
    STRONGROOM_OIDC_CLIENT_ID: 'strongroom',
    STRONGROOM_OIDC_CLIENT_SECRET_FILE: fileOf('secret', ' xyzzy\n'),
    STRONGROOM_OIDC_ROLES: fileOf('roles', JSON.stringify([rule])),
  };
  assert.deepEqual(readConfig(complete).identityProvider, {
    issuer: 'https://login.example.com/realms/one',
    clientId: 'strongroom',
    clientSecret: 'xyzzy',
    name: 'login.example.com',
    scopes: ['profile', 'email'],
    consoleUrl: 'https://vault.example.com/console',
    redirectUri: 'https://vault.example.com/console/oidc',
  });
  assert.deepEqual([...readConfig(complete).roleRules], [{ claim: 'groups', ...rule }]);
  for (const name of ['PUBLIC_URL', 'OIDC_CLIENT_ID', 'OIDC_ROLES']) {
    const [problem, ...others] = problemsOf({ ...complete, [`STRONGROOM_${name}`]: '' });
    assert.match(problem ?? '', new RegExp(`^STRONGROOM_${name} is required`));
    assert.deepEqual(others, []);
  }
  assert.match(
    problemsOf({ STRONGROOM_OIDC_CLIENT_ID: 'xyzzy' }).join(),
    /^STRONGROOM_OIDC_CLIENT_ID needs STRONGROOM_OIDC_ISSUER\.$/,
  );
  const issuer = (url: string) => problemsOf({ ...complete, STRONGROOM_OIDC_ISSUER: url }).length;
  for (const url of ['http://127.0.0.1:8081', 'http://localhost:8081/', 'http://[::1]:8081']) {
    assert.equal(issuer(url), 0, url);
  }
  for (const url of [
    'http://login.example.com',
    'http://127.0.0.1.example.com',
    'http://10.0.0.7',
    'https://xyzzy@login.example.com',
    'https://login.example.com?a=b',
    'ftp://login.example.com',
    'login.example.com',
  ]) {
    assert.equal(issuer(url), 1, url);
  }
  for (const [name, value] of [
    ['CLIENT_SECRET_FILE', fileOf('empty', '\n')],
    ['CLIENT_SECRET_FILE', join(directory, 'absent')],
    ['NAME', 'x'.repeat(41)],
    ['NAME', 'two\nlines'],
    ['SCOPES', 'profile "email"'],
    ['ROLES', join(directory, 'absent')],
    ['ROLES', fileOf('no-json', 'xyzzy')],
    ['ROLES', fileOf('object', '{}')],
    ['ROLES', fileOf('misspelled', JSON.stringify([{ ...rule, group: 'xyzzy' }]))],
    ['ROLES', fileOf('no-tenant', JSON.stringify([{ value: 'support', application }]))],
    ['ROLES', fileOf('no-id', JSON.stringify([{ ...rule, application: 'xyzzy' }]))],
  ] as const) {
    const problems = problemsOf({ ...complete, [`STRONGROOM_OIDC_${name}`]: value });
    assert.equal(problems.length, 1, `${name} ${value}`);
    assert.match(problems[0] ?? '', new RegExp(`^STRONGROOM_OIDC_${name} `));
    assert.ok(!problems.join().includes('xyzzy'), problems.join());
  }
});

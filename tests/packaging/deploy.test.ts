/** The files of `deploy/` and the Dockerfile agree with the program: variables, options, limits and times. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { bodyBytesMax } from '../../src/http/protocol/body.ts';
import { requestTimeoutMs } from '../../src/http/transport.ts';
import { refuseUnknown } from '../../src/runtime/config/variables.ts';
import { committedPaths, root } from '../support/source.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const read = (path: string) => readFileSync(join(root, path), 'utf8');
const { scripts, version } = JSON.parse(read('package.json'));

test('every variable that a file for deployment names is known', () => {
  const paths = committedPaths().filter((path) => /^(?:deploy\/|Dockerfile$)/.test(path));
  assert.ok(paths.length > 5);
  for (const path of paths) {
    const names = read(path).match(/\bSTRONGROOM_[A-Z_]*[A-Z]\b/g) ?? [];
    refuseUnknown(Object.fromEntries(names.map((name) => [name, 'x'])));
  }
  assert.throws(() => refuseUnknown({ STRONGROOM_ROOT_KEYS: 'x' }), /did you mean/);
});

test('the container and the systemd unit start Node with the options of npm start', () => {
  const options = /node ((?:--\S+ )+)bin/.exec(scripts.start)?.[1]?.trim() ?? '';
  assert.match(options, /^--disable-sigusr1 /);
  const unit = read('deploy/systemd/strongroom.service');
  assert.ok(
    unit.includes(
      `/opt/strongroom/node_modules/.bin/node ${options} /opt/strongroom/bin/strongroom.js serve\n`,
    ),
  );
  const words = options.split(' ').map((option) => `"${option}"`);
  assert.ok(read('Dockerfile').includes(`ENTRYPOINT ["node", ${words.join(', ')}, `));
  for (const path of ['deploy/systemd/strongroom.service', 'Dockerfile']) {
    assert.match(read(path), /\bMALLOC_ARENA_MAX=1\b/);
  }
  assert.match(unit, /^LimitCORE=0$/m);
  assert.match(unit, /^OOMPolicy=continue$/m);
});

const noAnalyze =
  spawnSync('systemd-analyze', ['--version']).status !== 0 && 'not here: systemd-analyze';

test('systemd accepts the units, and finds no more exposed than before', {
  skip: noAnalyze,
}, (t) => {
  const directory = temporaryDirectory(t);
  for (const name of ['strongroom', 'strongroom-backup']) {
    const unit = join(directory, `${name}.service`);
    writeFileSync(unit, read(`deploy/systemd/${name}.service`).replaceAll('/opt/strongroom', root));
    const { stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', unit], {
      encoding: 'utf8',
    });
    const ofUnit = stderr.split('\n').filter((line) => line.includes(name));
    assert.deepEqual(ofUnit, []);
  }
  const { status, stdout } = spawnSync(
    'systemd-analyze',
    ['security', '--offline=true', '--threshold=20', join(directory, 'strongroom.service')],
    { encoding: 'utf8' },
  );
  assert.equal(status, 0, stdout);
});

test('the unit is told by the vault when it is ready, and gets its root key as a credential', () => {
  const unit = read('deploy/systemd/strongroom.service');
  for (const line of [
    'Type=notify',
    'NotifyAccess=all',
    'WatchdogSec=60',
    'ExecReload=/bin/kill -HUP $MAINPID',
    'MemoryMax=2G',
    'LoadCredential=root.key:/etc/strongroom/root.key',
    'Environment=STRONGROOM_ROOT_KEY_FILE=/run/credentials/%n/root.key',
  ]) {
    assert.ok(unit.includes(`\n${line}\n`), line);
  }
});

test('the manifests run this version as a user without rights, on a file system it cannot write', () => {
  for (const path of ['embedded', 'postgresql'].map((name) => `deploy/kubernetes/${name}.yaml`)) {
    const text = read(path);
    const needed = [
      `image: strongroom:${version}\n`,
      'runAsNonRoot: true',
      'runAsUser: 10001',
      'seccompProfile: {type: RuntimeDefault}',
      'allowPrivilegeEscalation: false',
      'readOnlyRootFilesystem: true',
      'capabilities: {drop: [ALL]}',
      'automountServiceAccountToken: false',
      'enableServiceLinks: false',
    ];
    assert.deepEqual(
      needed.filter((line) => !text.includes(line)),
      [],
      path,
    );
    for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
      assert.match(
        text,
        new RegExp(`${probe}:\n +httpGet: \\{path: /(?:healthz|readyz), port: https,`),
      );
    }
  }
});

test('the vaults of compose.yaml get their secrets from files, and nginx the configuration that is shipped', () => {
  const text = read('compose.yaml');
  assert.ok(text.includes(`image: strongroom:${version}\n`));
  for (const line of [
    'read_only: true',
    'cap_drop: [ALL]',
    'no-new-privileges:true',
    '{internal: true}',
  ]) {
    assert.ok(text.includes(line), line);
  }
  const names = text.match(/\bSTRONGROOM_[A-Z_]*[A-Z]\b/g) ?? [];
  refuseUnknown(Object.fromEntries(names.map((name) => [name, 'x'])));
  assert.doesNotMatch(text, /PASSWORD: |_ROOT_KEY: |DATABASE_URL: |BOOTSTRAP_KEY: /);
  // The names that it writes in place of those of the example are there to be replaced.
  const nginx = read('deploy/proxies/nginx.conf');
  const replaced = [...text.matchAll(/-e '(?:s\|([^|]+)\||s?\/([^/]+)\/)/g)];
  assert.equal(replaced.length, 6);
  for (const [, path, name = path] of replaced) {
    assert.ok(nginx.includes(`${name}`.replaceAll('\\', '')), `${name}`);
  }
});

test('the timers back up, remove old backups and verify the newest', () => {
  const unit = read('deploy/systemd/strongroom-backup.service');
  const job = read('deploy/kubernetes/backup.yaml');
  for (const text of [unit, job]) {
    assert.match(text, /backup --keep 14 \S*\/strongroom/);
    assert.match(text, /restore --dry-run "\$\(ls -d \S+\/strongroom\/20\*Z \| tail -n 1\)"/);
  }
  assert.match(read('deploy/systemd/strongroom-backup.timer'), /^OnCalendar=/m);
  assert.ok(job.includes(`image: strongroom:${version}\n`));
  for (const line of ['runAsNonRoot: true', 'readOnlyRootFilesystem: true', 'drop: [ALL]']) {
    assert.ok(job.includes(line), line);
  }
});

test('metrics are not on the address of clients, unless the operator puts them there', () => {
  // What runs a command serves no metrics.
  const paths = committedPaths().filter((path) =>
    /^(?:deploy\/(?:kubernetes|systemd)\/(?!\S*backup\.)|Dockerfile$)/.test(path),
  );
  assert.ok(paths.length > 3);
  for (const path of paths) {
    const text = read(path);
    const [, port] =
      /STRONGROOM_METRICS_ADDRESS(?:=|, value: ")(?:0\.0\.0\.0|127\.0\.0\.1):(\d+)/.exec(text) ??
      [];
    assert.ok(port !== undefined && port !== '8080', path);
    assert.ok(!/^EXPOSE .*\b9464\b/m.test(text), path);
    for (const service of text.split('---\n').filter((one) => /^kind: Service$/m.test(one))) {
      assert.ok(!service.includes(port) && !service.includes('metrics'), path);
    }
  }
});

test('the proxies let through what the vault accepts, and wait longer than it does', () => {
  const nginx = read('deploy/proxies/nginx.conf');
  assert.equal(bodyBytesMax, 1024 * 1024);
  assert.match(nginx, /^ {2}client_max_body_size 1m;$/m);
  for (const name of ['proxy_request_buffering', 'proxy_buffering']) {
    assert.match(nginx, new RegExp(`^ {2}${name} +off;$`, 'm'));
  }
  const seconds = (text: string, pattern: RegExp) => Number(pattern.exec(text)?.[1]) * 1000;
  assert.ok(seconds(nginx, /client_body_timeout +(\d+)s/) > requestTimeoutMs);
  assert.ok(seconds(nginx, /proxy_read_timeout +(\d+)s/) > 2 * requestTimeoutMs);
  const haproxy = read('deploy/proxies/haproxy.cfg');
  assert.ok(seconds(haproxy, /timeout server +(\d+)s/) > 2 * requestTimeoutMs);
  assert.ok(nginx.includes('proxy_set_header X-Forwarded-For $remote_addr;'));
  assert.match(nginx, /^ {2}proxy_ignore_headers X-Accel-Redirect /m);
  assert.ok(haproxy.includes('http-request set-header X-Forwarded-For %[src]'));
});

/** The Helm chart: it renders, holds no secret, and gives each pod what it needs and no more. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { refuseUnknown } from '../../src/runtime/config/variables.ts';
import { root } from '../support/source.ts';

const chart = join(root, 'deploy', 'helm');
/** Another one than that on the path may be named. */
const helm = process.env['TEST_HELM'] ?? 'helm';
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

const run = (...words: string[]) => spawnSync(helm, words, { encoding: 'utf8' });
const skip = run('version').status !== 0 && `not here: helm (${helm})`;

/** The documents of the chart by kind and name. */
function rendered(...words: string[]): ReadonlyMap<string, string> {
  const { status, stdout, stderr } = run('template', 'vault', chart, ...words);
  assert.equal(status, 0, stderr);
  const documents = stdout.split(/^---$/m).filter((text) => /^kind: /m.test(text));
  return new Map(
    documents.map((text) => {
      const kind = /^kind: (\w+)$/m.exec(text)?.[1];
      const name = /^metadata:\n {2}name: (\S+)$/m.exec(text)?.[1];
      assert.match(text, /^apiVersion: \S+$/m);
      assert.ok(kind !== undefined && name !== undefined, text);
      return [`${kind} ${name}`, text];
    }),
  );
}

const everything = [
  ...['--set', 'serviceMonitor.enabled=true', '--set', 'autoscaling.enabled=true'],
  ...['--set', 'secrets.databaseAuthority=authority'],
  ...['--set', 'secrets.identityProvider=login'],
  ...['--set-json', 'networkPolicy.monitoring=[{"namespaceSelector": {}}]'],
  ...['--set-json', 'settings={"log_level": "warn", "trusted_proxies": ["10.0.0.0/8"]}'],
];

test('helm finds nothing wrong with the chart', { skip }, () => {
  const { status, stdout } = run('lint', '--strict', chart);
  assert.equal(status, 0, stdout);
});

test('it is of this version, and has what was asked for', { skip }, () => {
  const text = readFileSync(join(chart, 'Chart.yaml'), 'utf8');
  assert.ok(text.includes(`\nversion: ${version}\nappVersion: "${version}"\n`));
  const always = [
    'ConfigMap vault-strongroom',
    'Deployment vault-strongroom',
    'Job vault-strongroom-migrate',
    'NetworkPolicy vault-strongroom',
    'PodDisruptionBudget vault-strongroom',
    'Service vault-strongroom',
    'ServiceAccount vault-strongroom',
  ];
  assert.deepEqual([...rendered().keys()].sort(), always);
  const more = ['HorizontalPodAutoscaler vault-strongroom', 'ServiceMonitor vault-strongroom'];
  assert.deepEqual(
    [...rendered(...everything).keys()].sort(),
    [...always, ...more, 'Service vault-strongroom-metrics'].sort(),
  );
});

test('pods run as a user without rights, know the variables, and mount what they name', {
  skip,
}, () => {
  const all = rendered(...everything);
  for (const name of ['Deployment vault-strongroom', 'Job vault-strongroom-migrate']) {
    const text = all.get(name) ?? '';
    for (const line of [
      'runAsNonRoot: true',
      'runAsUser: 10001',
      'seccompProfile: {type: RuntimeDefault}',
      'allowPrivilegeEscalation: false',
      'readOnlyRootFilesystem: true',
      'capabilities: {drop: [ALL]}',
      'automountServiceAccountToken: false',
      'enableServiceLinks: false',
      `image: "strongroom:${version}"`,
    ]) {
      assert.ok(text.includes(line), `${name}: ${line}`);
    }
    const variables = text.match(/\bSTRONGROOM_[A-Z_]+/g) ?? [];
    assert.ok(variables.length > 4);
    refuseUnknown(Object.fromEntries(variables.map((variable) => [variable, 'x'])));
    const mounted = [...text.matchAll(/\{name: (\w+), mountPath: (\S+),/g)];
    const volumes = [...text.matchAll(/^ {8}- name: (\w+)\n {10}(?:secret|configMap):/gm)];
    assert.deepEqual(
      mounted.map(([, volume]) => volume).sort(),
      volumes.map(([, volume]) => volume).sort(),
    );
    for (const [, path = ''] of text.matchAll(/value: (\/etc\/strongroom\/\S+)\}/g)) {
      assert.ok(
        mounted.some(([, , place]) => path.startsWith(`${place}/`)),
        path,
      );
    }
  }
});

test('secrets come from files, and the management key reaches the migration alone', {
  skip,
}, () => {
  const all = rendered(...everything);
  for (const [name, text] of all) {
    assert.ok(!/secretKeyRef|^kind: Secret$/m.test(text), name);
    assert.equal(/management/.test(text), name === 'Job vault-strongroom-migrate', name);
  }
  const job = all.get('Job vault-strongroom-migrate') ?? '';
  assert.match(job, /helm\.sh\/hook: pre-install,pre-upgrade/);
  assert.match(job, /args: \[database, migrate\]/);
});

test('metrics are on no address of clients, and nobody reaches them unless the operator says who', {
  skip,
}, () => {
  const all = rendered(...everything);
  assert.ok(!/9464|metrics/.test(all.get('Service vault-strongroom') ?? ''));
  assert.match(all.get('NetworkPolicy vault-strongroom') ?? '', /port: metrics, protocol: TCP/);
  assert.doesNotMatch(rendered().get('NetworkPolicy vault-strongroom') ?? '', /metrics/);
  assert.match(all.get('ServiceMonitor vault-strongroom') ?? '', /strongroom\/purpose: metrics/);
});

test('other settings are other pods, autoscaling decides alone, and a digest takes the place of a tag', {
  skip,
}, () => {
  const settingsIn = (all: ReadonlyMap<string, string>) =>
    /strongroom\/settings: (\w{64})/.exec(all.get('Deployment vault-strongroom') ?? '')?.[1];
  const all = rendered(...everything);
  assert.notEqual(settingsIn(all), settingsIn(rendered()));
  assert.match(all.get('ConfigMap vault-strongroom') ?? '', /trusted_proxies/);
  assert.doesNotMatch(all.get('Deployment vault-strongroom') ?? '', /replicas:/);
  const digest = `sha256:${'a'.repeat(64)}`;
  const pinned = rendered('--set', `image.digest=${digest}`);
  assert.ok(pinned.get('Deployment vault-strongroom')?.includes(`image: "strongroom@${digest}"`));
});

test('a value that does not exist, or is not of its kind, is refused', { skip }, () => {
  for (const wrong of ['replica=3', 'settings.log_levl=info', 'image.digest=latest']) {
    assert.notEqual(run('template', 'vault', chart, '--set', wrong).status, 0, wrong);
  }
});

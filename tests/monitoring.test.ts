/** The dashboard and the alert rules: whatever they name is measured, and each alert has its runbook. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { writeCertificate } from './support/certificate.ts';
import { engineOf } from './support/engines.ts';
import { root } from './support/source.ts';
import { temporaryDirectory } from './support/temporary.ts';
import { request, startVault } from './support/vault.ts';

const read = (path: string) => readFileSync(join(root, path), 'utf8');

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: {
    readonly h: number;
    readonly w: number;
    readonly x: number;
    readonly y: number;
  };
  readonly datasource?: { readonly uid: string };
  readonly targets?: readonly { readonly refId: string; readonly expr: string }[];
}

interface Dashboard {
  readonly uid: string;
  readonly title: string;
  readonly schemaVersion: number;
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly query: unknown }[];
  };
  readonly panels: readonly Panel[];
}

const dashboard = JSON.parse(read('deploy/grafana-dashboard.json')) as Dashboard;
const rules = read('deploy/alerts.yaml');
const alerts = [...rules.matchAll(/- alert: (\w+)\n +expr: (.+)\n/g)].map(
  ([, name = '', expr = '']) => ({ name, expr }),
);
const columns = 24;

/** The names of all series of a vault in which everything is configured that has metrics. */
async function measured(t: TestContext): Promise<Set<string>> {
  const directory = temporaryDirectory(t);
  const { certFile, keyFile } = writeCertificate(directory);
  const vault = await startVault(t, engineOf('postgres'), {
    environment: {
      STRONGROOM_TLS_CERT: certFile,
      STRONGROOM_TLS_KEY: keyFile,
      STRONGROOM_METRICS_ADDRESS: '127.0.0.1:0',
      STRONGROOM_LOG_EXPORT: join(directory, 'log.ndjson'),
      STRONGROOM_CHECKPOINT_SINK: join(directory, 'checkpoints.ndjson'),
    },
  });
  const { text } = await request(`${vault.running.metricsUrl}?tokens=by-tenant`, 'GET');
  const types = [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)];
  return new Set(
    types.flatMap(([, name = '', type]) =>
      type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
    ),
  );
}

const seriesIn = (text: string) => text.match(/\b(?:strongroom|process|nodejs)_\w+/g) ?? [];

test('every metric that the dashboard and the alerts name is measured', async (t) => {
  const known = await measured(t);
  const queries = dashboard.templating.list.map(({ query }) => JSON.stringify(query));
  const expressions = dashboard.panels.flatMap(({ targets = [] }) =>
    targets.map(({ expr }) => expr),
  );
  const named = [...queries, ...expressions, ...alerts.map(({ expr }) => expr)].flatMap(seriesIn);
  assert.ok(named.length > 50);
  assert.deepEqual(
    named.filter((name) => !known.has(name)),
    [],
  );
  const documented = new Set(read('docs/monitoring.md').match(/\bstrongroom_\w+/g));
  const own = [...known].filter((name) => name.startsWith('strongroom_'));
  const base = (name: string) => name.replace(/_(?:bucket|sum|count)$/, '');
  assert.deepEqual(
    own.filter((name) => !documented.has(name) && !documented.has(base(name))),
    [],
    'docs/monitoring.md has them all',
  );
});

test('the dashboard is one that Grafana loads: panels in the grid, each with a source and queries', () => {
  const { uid, title, schemaVersion, panels, templating } = dashboard;
  assert.deepEqual([uid, title], ['strongroom', 'Strongroom']);
  assert.ok(schemaVersion >= 36);
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
  const variables = new Set(templating.list.map(({ name }) => name));
  for (const { type, title, gridPos, datasource, targets = [] } of panels) {
    const { x, w, h } = gridPos;
    assert.ok(title !== '' && x >= 0 && w > 0 && h > 0 && x + w <= columns, title);
    if (type === 'row') continue;
    assert.equal(datasource?.uid, `$${'{datasource}'}`, title);
    assert.ok(targets.length > 0, title);
    assert.equal(new Set(targets.map(({ refId }) => refId)).size, targets.length);
    for (const { expr } of targets) {
      assert.equal(expr.split('(').length, expr.split(')').length, expr);
      for (const [, name = ''] of expr.matchAll(/\$(\w+)/g)) {
        assert.ok(variables.has(name) || name === '__rate_interval', expr);
      }
    }
  }
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, at) => `${x + (at % w)} ${y + Math.floor(at / w)}`),
  );
  assert.equal(new Set(cells).size, cells.length, 'no panel covers another');
});

test('the alerts are rules of Prometheus, each with its runbook', () => {
  const names = alerts.map(({ name }) => name);
  assert.deepEqual(names, [
    'VaultDown',
    'ServerErrors',
    'IntegrityFailures',
    'UnusualUse',
    'JobFailures',
    'CheckpointOld',
    'StoreSlow',
    'DatabaseHosts',
    'DatabaseStandbyDown',
    'QueueLong',
    'AuthenticationFailures',
    'DiskFull',
    'CertificateEnds',
  ]);
  assert.equal(rules.match(/- alert:/g)?.length, names.length);
  const runbook = read('docs/alerts.md');
  for (const name of names) {
    assert.ok(runbook.includes(`\n## ${name}\n`), name);
    assert.ok(rules.includes(`runbook: docs/alerts.md#${name.toLowerCase()}\n`), name);
  }
  const promtool = spawnSync('promtool', ['check', 'rules', join(root, 'deploy/alerts.yaml')], {
    encoding: 'utf8',
  });
  // Not every machine has it.
  if (!promtool.error) assert.equal(promtool.status, 0, promtool.stdout + promtool.stderr);
});

/** The chart and the manifests are what Kubernetes takes, down to the last attribute. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, globSync, readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { writeSchemas } from '../support/kubernetes-schemas.ts';
import { root } from '../support/source.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/**
 * `go install github.com/yannh/kubeconform/cmd/kubeconform@latest` and `go mod download k8s.io/kubernetes@v1.37.0`.
 * Others than those on the path, and in the cache of modules, may be named.
 */
const kubeconform = process.env['TEST_KUBECONFORM'] ?? 'kubeconform';
const helm = process.env['TEST_HELM'] ?? 'helm';
const swagger = process.env['TEST_KUBERNETES_SWAGGER'] ?? newestSwagger();

function newestSwagger(): string {
  const modules = join(homedir(), 'go', 'pkg', 'mod', 'k8s.io');
  const found = globSync('kubernetes@v*/api/openapi-spec/swagger.json', { cwd: modules }).sort();
  return join(modules, found.at(-1) ?? 'none');
}

const isHere = (command: string, flag: string) => spawnSync(command, [flag]).status === 0;
const absent = [
  ...(isHere(kubeconform, '-v') ? [] : [`kubeconform (${kubeconform})`]),
  ...(existsSync(swagger) ? [] : ['k8s.io/kubernetes in the cache of Go modules']),
];
const skip = absent.length > 0 && `not here: ${absent.join(', ')}`;

/** A kind that another project defines. */
const others = 'ServiceMonitor';

function findings(schemas: string, manifests: { file: string } | { text: string }): string {
  const flags = ['-strict', '-summary', '-skip', others, '-schema-location', schemas];
  const { status, stdout, stderr } = spawnSync(
    kubeconform,
    [...flags, 'file' in manifests ? manifests.file : '-'],
    { encoding: 'utf8', ...('text' in manifests && { input: manifests.text }) },
  );
  const [, valid = '0'] = /Valid: (\d+)/.exec(stdout) ?? [];
  return status === 0 && Number(valid) > 0 ? '' : `${stdout}${stderr}`;
}

test('each manifest of deploy/kubernetes is one', { skip }, (t) => {
  const schemas = writeSchemas(swagger, temporaryDirectory(t));
  const directory = join(root, 'deploy', 'kubernetes');
  const files = readdirSync(directory).filter((name) => name.endsWith('.yaml'));
  assert.ok(files.length >= 3);
  for (const name of files) assert.equal(findings(schemas, { file: join(directory, name) }), '');
});

test('the chart renders to manifests, with all that it can have', {
  skip: skip || (!isHere(helm, 'version') && `not here: helm (${helm})`),
}, (t) => {
  const schemas = writeSchemas(swagger, temporaryDirectory(t));
  const options = [
    [],
    [
      ...['--set', 'serviceMonitor.enabled=true', '--set', 'autoscaling.enabled=true'],
      ...['--set', 'secrets.databaseAuthority=authority'],
    ],
  ];
  for (const words of options) {
    const chart = join(root, 'deploy', 'helm');
    const { status, stdout, stderr } = spawnSync(helm, ['template', 'vault', chart, ...words], {
      encoding: 'utf8',
    });
    assert.equal(status, 0, stderr);
    assert.equal(findings(schemas, { text: stdout }), '');
    const misspelled = stdout.replace('readOnlyRootFilesystem', 'readonlyRootFilesystem');
    assert.match(findings(schemas, { text: misspelled }), /readonlyRootFilesystem/);
  }
});

/** The commands of the guides do what the guides say, as they are printed. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { type CodeBlock, codeBlocksOf } from '../support/code-blocks.ts';
import { engineOf } from '../support/engines.ts';
import { program as openBao, rootToken, startOpenBao, withoutOpenBao } from '../support/openbao.ts';
import { compileCache, environmentOf, main, withCode } from '../support/process.ts';
import { runProgram } from '../support/programs.ts';
import { startCalled } from '../support/proxy-calls.ts';
import { committedPaths, root } from '../support/source.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { visa } from '../support/values.ts';
import { managementKey, revealEverything, startVault } from '../support/vault.ts';

interface Guide {
  /** Parts of what its commands print. */
  readonly shown: readonly string[];
  /** What a reader has before the first command. */
  readonly given?: string;
  /** What a reader writes in place of `NAME=…`. */
  readonly values?: Readonly<Record<string, string>>;
  /** No server runs: the commands do what it would do. */
  readonly isStopped?: true;
}

const acme = 'strongroom tenant create --name acme';
const checkpoint = 'curl "$URL/logs/checkpoint" -H "SVC-API-KEY: $MANAGEMENT" > checkpoints.ndjson';
/** What only root may do, or a machine with systemd: commands run as this user, and no unit is started. */
const machine = `systemctl() { :; }
journalctl() { :; }
useradd() { :; }
npm() { :; }
sudo() { while [[ $1 == -* ]]; do [[ $1 =~ ^(-u|--user)$ ]] && shift; shift; done; "$@"; }
install() { command install $(printf '%s\\n' "$@" | sed -E '/^-[og]$/,+1d'); }`;
const bao = withoutOpenBao ? undefined : await startOpenBao({ after });

const guides: Readonly<Record<string, Guide>> = {
  'docs/access.md': {
    shown: ['"shown":"masked"', '"name":"Acme"'],
  },
  'docs/audit.md': {
    shown: ['"shown":"revealed"', 'Signature Verified Successfully', 'explains every row'],
  },
  'docs/backup.md': {
    given: `${machine}
${checkpoint}
cp "$STRONGROOM_DATA_DIR/root.key" etc/root.key
export STRONGROOM_ROOT_KEY_FILE=$PWD/etc/root.key
strongroom logs export --out log.ndjson
jq -c 'select(.kind == "entry")' log.ndjson > collected.ndjson
tail -n 1 collected.ndjson | jq -c '.hash = "none" | .operation = "delete" | .result = "success"' >> collected.ndjson`,
    shown: ['complete and can be restored', 'is restored', '"delete","log_checkpoint"'],
  },
  'docs/bank-verification.md': { shown: ['{"status":"enabled"}', '"brand":"visa"'] },
  'docs/bulk.md': { shown: ['"line":3,"status":201', '"data.number"', '{"exported":'] },
  'docs/cli.md': {
    given: `(umask 077 && echo "$KEY" > key.txt)
strongroom login "$URL" --key-file key.txt`,
    values: {
      APPLICATION: `$(curl "$URL/applications" -H "SVC-API-KEY: $MANAGEMENT" | jq -r '.data[0].id')
(umask 077 && echo "$MANAGEMENT" > key.txt)
strongroom login "$URL" --key-file key.txt`,
    },
    shown: ['The profile production is removed', '{"order":"4712"}', 'allowed'],
  },
  'docs/console.md': {
    values: {
      APPLICATION: `$(curl "$URL/applications" -H "SVC-API-KEY: $MANAGEMENT" | jq -r '.data[0].id')`,
      PERSON: `$(strongroom person list --tenant default --json | jq -r 'select(.name == "Ada Lovelace").id')`,
    },
    shown: ['/console#'],
  },
  'docs/erasure.md': {
    given: `ID=my-first-card
curl -X DELETE "$URL/tokens/$ID" -H "SVC-API-KEY: $KEY"`,
    shown: ['my-first-card'],
  },
  'docs/examples/mappings/README.md': {
    given: `export STRONGROOM_URL=$URL STRONGROOM_KEY=$KEY
cp ${join(root, 'docs/examples/mappings')}/alias.* .
cp alias.csv cards.csv`,
    shown: ['XXXX'],
  },
  'docs/fields.md': {
    given: 'NONCE=$(curl -X POST "$URL/sessions" -H "SVC-API-KEY: $PUBLIC" | jq -r .nonce)',
    shown: ['"origins":["http://localhost:3000"]'],
  },
  'docs/find-and-resolve.md': { shown: ['ends in 4242'] },
  'docs/incidents.md': {
    given: 'echo "$KEY" > leaked-key.txt',
    values: {
      KEY_ID: '$(strongroom key find --json < leaked-key.txt | jq -r .key_id)',
      TENANT: 'default',
      APPLICATION: '$(strongroom key find --json < leaked-key.txt | jq -r .application_id)',
      ADDRESS: '127.0.0.1',
      TOKEN: 'my-first-card',
    },
    shown: ['shown only once', '127.0.0.1'],
  },
  'docs/keys.md': {
    isStopped: true,
    shown: ['Destroyed version 1 of the data key', 'explains every row'],
  },
  'docs/operate.md': {
    isStopped: true,
    given: `${machine}\nrm -r "$STRONGROOM_DATA_DIR"/*`,
    shown: ['every variable is known and valid'],
  },
  'docs/pci-dss.md': { shown: ['files are as approved'] },
  'docs/proxies.md': { given: acme, shown: ['{"paid":true}', 'partner.example.com'] },
  'docs/root-key.md': {
    isStopped: true,
    given: bao
      ? `export BAO_ADDR=${bao.address} BAO_TOKEN=${rootToken}
bao() { command '${openBao}' "$@"; }
bao secrets disable transit`
      : '',
    shown: bao ? ['Uploaded policy: strongroom'] : [],
  },
  'docs/reactors.md': { shown: ['"raw":{"last4":"4242","merchant":"Acme"}'] },
  'docs/sessions.md': { shown: ['"number":"4242424242424242"'] },
  'docs/time-and-limits.md': { given: acme, shown: [] },
  'docs/webhooks.md': { shown: ['"secret":"whsec_'] },
};

/** Where other tests follow a document step by step. */
const followed: Readonly<Record<string, string>> = {
  'README.md': 'tests/packaging/readme.test.ts',
  'docs/start.md': 'tests/packaging/readme.test.ts',
  'docs/tutorials/accept-cards.md': 'tests/fields/tutorial.test.ts',
  'docs/tutorials/agents.md': 'tests/cli/agent-programs.test.ts',
};

/** Commands that need what a test has not, and what tests them in another form. */
const others: readonly { readonly command: RegExp; readonly reason: string }[] = [
  { command: /^docker /m, reason: 'Docker: tests/packaging/image.test.ts, deploy.test.ts' },
  { command: /^(?:kubectl|helm) /m, reason: 'a cluster: tests/packaging/kubeconform.test.ts' },
  { command: /^\s*openssl pkeyutl .*release\.pub/m, reason: 'tests/packaging/release.test.ts' },
  ...(bao ? [] : [{ command: /^bao /m, reason: 'OpenBao, which is not here' }]),
  { command: /--to shamir|strongroom unseal/, reason: 'people: tests/keys/root/shamir.test.ts' },
  { command: /strongroom database copy /, reason: 'tests/laws/database-copy.test.ts' },
  { command: /database distribute|npm run test:citus/, reason: 'Citus' },
  { command: /^STRONGROOM_DATABASE_URL=\S+$/m, reason: 'tests/faults/failover.test.ts' },
  { command: /pg_(?:dump|restore) /, reason: "PostgreSQL's own tools, of its release" },
  { command: /strongroom login [^-]*$/, reason: 'asks at a terminal: tests/cli/resources.test.ts' },
  { command: /strongroom agent run/, reason: 'tests/cli/agent-run.test.ts' },
  { command: /strongroom approvals/, reason: 'tests/cli/approvals.test.ts' },
  { command: /HTTPS_PROXY/, reason: 'tests/http/egress-proxy.test.ts' },
  { command: /STRONGROOM_OIDC/, reason: 'a provider: tests/browser/oidc.test.ts' },
  {
    command: /(?:npm|pip) (?:run|install) |store\.(?:ts|py)/,
    reason: 'tests/packaging/readme.test.ts',
  },
];

const otherOf = ({ code }: CodeBlock) => others.find(({ command }) => command.test(code));
const blocksOf = (path: string) =>
  codeBlocksOf(path, readFileSync(join(root, path), 'utf8')).filter(
    ({ language }) => language === 'sh',
  );

const programs = ['curl', 'jq', 'openssl'].filter((name) => spawnSync(name, ['--help']).error);
const skip = programs.length > 0 && `not here: ${programs.join(', ')}`;

const called = await startCalled({ after });
called.destination.behave(async ({ response, received }) => {
  await received;
  response.writeHead(200, { 'content-type': 'application/json' }).end('{"paid":true}');
});

for (const [path, { shown, given = '', values = {}, isStopped }] of Object.entries(guides)) {
  test(path, { skip }, async (t) => {
    // Of its own: what a guide proves about the log holds for all tenants of a vault.
    const vault = await startVault(t, engineOf('sqlite'), { environment: called.environment });
    const permissions = ['token:use', 'proxy:invoke', 'reactor:invoke'];
    const KEY = await vault.application({ rules: [revealEverything], permissions });
    const PUBLIC = await vault.application({ type: 'public', permissions: ['token:create'] });
    const keys = { MANAGEMENT: managementKey, KEY, PRIVATE: KEY, STRONGROOM_KEY: KEY, PUBLIC };
    const card = { id: 'my-first-card', type: 'card', data: { ...visa } };
    await vault.send('POST', '/tokens', { key: KEY, body: card });
    // Somebody has seen the card.
    await vault.send('GET', '/tokens/my-first-card', { key: KEY });
    const directory = temporaryDirectory(t);
    const { body } = await vault.send('GET', '/logs/checkpoint', { key: managementKey });
    writeFileSync(join(directory, 'log-key.pem'), body.public_key_pem);
    if (isStopped) await vault.stop();
    const text = readFileSync(join(root, path), 'utf8');
    for (const [, name = '', indent = '', code = ''] of text.matchAll(
      /\b[Ss]ave this(?: \w+)? as `([\w.-]+)`[^`]*?\n\n( *)```\w+\n(.*?)^\2```/gms,
    )) {
      writeFileSync(join(directory, name), code.replaceAll(`\n${indent}`, '\n'));
    }
    const places: Readonly<Record<string, string>> = {
      '/etc/strongroom': join(directory, 'etc'),
      '/etc/systemd/system': join(directory, 'units'),
      '/opt/strongroom': directory,
      '/var/backups/strongroom': join(directory, 'backups'),
      '/var/lib/strongroom': vault.place.dataDir,
    };
    const steps = blocksOf(path).filter((block) => !otherOf(block));
    const script = [
      'set -eEuo pipefail',
      `trap 'echo "failed: $BASH_COMMAND" >&2' ERR`,
      'curl() { command curl --silent --show-error --fail-with-body "$@"; }',
      'npx() { "$@"; }',
      ...Object.entries({ URL: vault.url, ...keys }).map(([name, value]) => `${name}='${value}'`),
      given,
      ...steps.map(({ code }) => code),
    ]
      .join('\n')
      .replaceAll(/http:\/\/127\.0\.0\.1:8080|https:\/\/vault\.example\.com/g, vault.url)
      .replaceAll('https://psp.example.com/v1', called.url)
      .replaceAll(new RegExp(Object.keys(places).join('|'), 'g'), (place) => places[place] ?? '')
      .replaceAll(/(?<=^| )(\w+)=(?:key_test_\w+)?…/gm, (_, name: string) => {
        return `${name}=${values[name] ?? keys[name as keyof typeof keys]}`;
      });
    // Nothing of this machine is changed.
    const others = script.replaceAll(directory, '~').replaceAll(vault.place.dataDir, '~');
    assert.ok(!/(?<=[\s=:])\/(?:etc|opt|var)\//.test(others), others);
    writeFileSync(join(directory, 'steps.sh'), script);
    for (const name of ['bin', 'deploy', 'node_modules']) {
      symlinkSync(join(root, name), join(directory, name));
    }
    for (const name of ['path', 'etc', 'units']) mkdirSync(join(directory, name));
    const command = `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`;
    writeFileSync(join(directory, 'path', 'strongroom'), command, { mode: 0o700 });
    const ran = await runProgram(['bash', '-c', `cd ${directory} && bash steps.sh`], {
      ...compileCache,
      ...environmentOf(vault.place, withCode),
      HOME: directory,
      PATH: `${join(directory, 'path')}:${process.env['PATH']}`,
    });
    assert.equal(ran.code, 0, ran.stderr + ran.stdout);
    for (const text of shown) assert.ok(ran.stdout.includes(text), `${text} in ${ran.stdout}`);
  });
}

test('every command of the documents is run, or another test is named', () => {
  const documents = committedPaths().filter(
    (path) => path.endsWith('.md') && !/^(?:docs\/adr\/|CHANGELOG)/.test(path),
  );
  const blocks = documents.filter((path) => !(path in followed)).flatMap(blocksOf);
  const unrun = blocks.filter(
    (block) => !otherOf(block) && !(block.place.replace(/:\d+$/, '') in guides),
  );
  assert.deepEqual(
    unrun.map(({ place }) => place),
    [],
  );
  const used = new Set(blocks.map(otherOf));
  assert.deepEqual(
    others.filter((other) => !used.has(other)),
    [],
  );
});

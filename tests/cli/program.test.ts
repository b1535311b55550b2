/** The program ends when its command has, and nothing that the command opened keeps it. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { commands } from '../../src/cli/commands.ts';
import { resourceCommands } from '../../src/cli/resources/table.ts';
import { onBothEngines } from '../support/engines.ts';
import { environmentOf, runProcess } from '../support/process.ts';
import { casesOf, seeded } from '../support/random.ts';
import { freePort, temporaryDirectory } from '../support/temporary.ts';

/** Runs until it is stopped. */
const servers = ['serve', 'demo'];

const ofTenant = ['--tenant', 'acme'];
const host = ['partner.example.com', ...ofTenant];

/** The words after those of each command. Some fail, and have opened the vault before. */
function wordsIn(directory: string, url: string): Readonly<Record<string, readonly string[]>> {
  const [backup, code, lines] = ['backup', 'code.js', 'lines'].map((name) => join(directory, name));
  writeFileSync(String(code), 'module.exports = async () => ({ raw: 1 });');
  writeFileSync(String(lines), '{"type":"token","data":"x"}\n');
  return {
    doctor: [],
    backup: [String(backup)],
    restore: ['--dry-run', String(backup)],
    'database distribute': [],
    'database migrate': [],
    'database copy': ['--from', directory, '--to', join(directory, 'copy')],
    'tenant create': ['--name', 'other'],
    'tenant list': [],
    'tenant quota': ofTenant,
    'tenant hosts add': host,
    'tenant hosts list': ofTenant,
    'tenant hosts remove': host,
    'tenant delete': ['--tenant', 'other', '--yes'],
    'key create': ofTenant,
    'key list': ofTenant,
    'key delete': [...ofTenant, '--key', 'none'],
    'token honey': ofTenant,
    'key find': [],
    'key revoke': [...ofTenant, '00000000-0000-4000-8000-000000000001'],
    incident: [...ofTenant, '00000000-0000-4000-8000-000000000001', '--since', '1d'],
    'keys rotate root': [],
    'keys rotate data': ofTenant,
    'keys rotate search': ofTenant,
    'keys rotate fingerprint': ofTenant,
    'keys rotate webhooks': ofTenant,
    'keys rotate log': ofTenant,
    'keys list': [],
    'keys pause': [],
    'keys resume': [],
    'keys destroy': ['data', '1', '--yes'],
    unseal: [],
    'erasure verify': [String(lines)],
    'logs verify': ['--state'],
    'logs export': [],
    'logs list': ofTenant,
    'logs who': [...ofTenant, 'token'],
    'logs what': [...ofTenant, '00000000-0000-4000-8000-000000000001'],
    'logs follow': [...ofTenant, '--for', '1s'],
    'person add': [...ofTenant, '--name', 'Ada Lovelace', '--application', 'none'],
    'person link': ofTenant,
    'person list': ofTenant,
    'person remove': [...ofTenant, '--person', 'none'],
    'person sessions': ofTenant,
    'person methods': [...ofTenant, '--person', 'none'],
    login: [url],
    logout: [],
    'profile list': [],
    'profile use': ['none'],
    // Of those for resources, which are made in one way, one.
    'token list': [],
    import: [String(lines), '--url', url],
    export: ['--url', url],
    'reactor run': [String(code)],
    'agent run': ['--', 'true'],
    mcp: [],
    completion: ['bash'],
  };
}

test('every command but a server is one of those that must end', (t) => {
  const words = wordsIn(temporaryDirectory(t), '');
  assert.deepEqual(
    Object.keys(commands)
      .filter((name) => !servers.includes(name))
      .filter((name) => name === 'token list' || !Object.hasOwn(resourceCommands, name))
      .sort(),
    Object.keys(words).sort(),
  );
});

onBothEngines('the program', (engine) => {
  test('ends by itself after each command', async (t) => {
    const place = await engine.migrated(t);
    const environment = environmentOf(place, { STRONGROOM_KEY: 'key_of_nothing' });
    const words = wordsIn(temporaryDirectory(t), `http://127.0.0.1:${await freePort()}`);
    const created = await runProcess(['tenant', 'create', '--name', 'acme'], environment);
    assert.equal(created.code, 0, created.stderr);
    const below = seeded(t);
    const names = Object.keys(words);
    const drawn = casesOf({ all: names.length, drawn: 6 });
    const chosen = names
      .map((name) => ({ name, order: below(2 ** 31) }))
      .toSorted((one, other) => one.order - other.order)
      .slice(0, drawn);
    for (const { name } of chosen) {
      const { code, stderr } = await runProcess(
        [...name.split(' '), ...(words[name] ?? [])],
        environment,
      );
      // A crash has the code 1 and a stack; a refusal is one line.
      assert.ok([0, 1, 2, 3].includes(Number(code)), `${name}: ${code} ${stderr}`);
      assert.doesNotMatch(stderr, /^ +at /m, name);
    }
  });
});

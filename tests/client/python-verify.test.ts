/** The Python client says the same of every proof as the TypeScript client, without a vault. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { StrongroomError } from '../../packages/client/src/client.ts';
import {
  verifyCheckpoint,
  verifyErasureReceipt,
  verifyLog,
} from '../../packages/client/src/verify.ts';
import type { ErasureReceipt, LogCheckpoint } from '../../packages/client/src/wire.ts';
import { publicKeyPem } from '../../src/keys/signing.ts';
import { onBothEngines } from '../support/engines.ts';
import { alterationsOf, historyOf } from '../support/log-alterations.ts';
import { python, withoutCryptography as skip } from '../support/python.ts';
import { stolenKeyReceipts } from '../support/signed-statements.ts';
import { root } from '../support/source.ts';
import { tenantsOf } from '../support/tenant.ts';

type Case = { readonly public_keys: readonly string[] } & (
  | { readonly log: string; readonly checkpoints: readonly LogCheckpoint[] }
  | { readonly receipt: ErasureReceipt }
  | { readonly checkpoint: LogCheckpoint }
);

const codeOf = (error: unknown) => {
  if (error instanceof StrongroomError) return error.code;
  throw error;
};

async function typescriptSays(one: Case): Promise<unknown> {
  const publicKeys = one.public_keys;
  if ('log' in one) {
    const { findings, ...report } = await verifyLog(one.log, { publicKeys, ...one });
    // What Python has as None is not there in TypeScript.
    const none = { tenant_id: null, stream_id: null };
    return { ...report, findings: findings.map((finding) => ({ ...none, ...finding })) };
  }
  return 'receipt' in one
    ? verifyErasureReceipt(one.receipt, { publicKeys }).catch(codeOf)
    : verifyCheckpoint(one.checkpoint, { publicKeys }).catch(codeOf);
}

async function assertSame(cases: Readonly<Record<string, Case>>): Promise<readonly unknown[]> {
  const { stdout, stderr, status } = spawnSync(
    python,
    [join(root, 'packages', 'python', 'tests', 'proofs.py')],
    {
      input: JSON.stringify(Object.values(cases)),
      env: {
        ...process.env,
        PYTHONPATH: join(root, 'packages', 'python', 'src'),
        PYTHONDONTWRITEBYTECODE: '1',
      },
      maxBuffer: 2 ** 26,
      encoding: 'utf8',
    },
  );
  assert.equal(status, 0, stderr);
  const results = JSON.parse(stdout) as unknown[];
  for (const [at, [name, one]] of Object.entries(cases).entries()) {
    assert.deepEqual(results[at], await typescriptSays(one), name);
  }
  return results;
}

onBothEngines('proofs in Python', (engine) => {
  const tenants = tenantsOf(engine);

  test('every altered line of a log is found, with the same findings', { skip }, async () => {
    const { log, first, checkpoint, publicKeys } = await historyOf(await tenants());
    const whole = { public_keys: publicKeys, checkpoints: [checkpoint] };
    const forged = { ...checkpoint, signature: first.signature };
    const strange = { ...checkpoint, public_keys: [...publicKeys, first.signature] };
    const cases: Record<string, Case> = {
      'as it is': { ...whole, log },
      'without a checkpoint': { ...whole, log, checkpoints: [] },
      'with an earlier checkpoint': { ...whole, log, checkpoints: [first] },
      'with a forged checkpoint': { ...whole, log, checkpoints: [forged] },
      'with a checkpoint next to a key that the log did not introduce': {
        ...whole,
        log,
        checkpoints: [strange],
      },
      'of nothing': { ...whole, log: '' },
      'of what is no JSON': { ...whole, log: `${log}Infinity\n{"kind":"entry","seq":NaN}\n` },
      'of what is nested too deeply': { ...whole, log: `${log}${'['.repeat(9_000)}\n` },
    };
    for (const { place, altered } of alterationsOf(log, checkpoint)) {
      cases[place] = { ...whole, log: altered };
    }
    const [intact] = (await assertSame(cases)) as { intact: boolean }[];
    assert.equal(intact?.intact, true);
  });

  test('a receipt and a checkpoint are genuine as they came, and no attribute of them can be changed', {
    skip,
  }, async () => {
    const { receipt, other, checkpoint, publicKeys } = await historyOf(await tenants());
    const strange = (await historyOf(await tenants())).publicKeys;
    const cases: Record<string, Case> = {
      receipt: { public_keys: publicKeys, receipt },
      checkpoint: { public_keys: publicKeys, checkpoint },
      'keys in PEM': { public_keys: publicKeys.map(publicKeyPem), receipt },
      'another key': { public_keys: strange, receipt },
      'a checkpoint of another key': { public_keys: strange, checkpoint },
      'no key': { public_keys: [], checkpoint },
      'what is no key': { public_keys: ['no key'], checkpoint },
      'another statement': {
        public_keys: publicKeys,
        receipt: { ...receipt, statement: other.statement },
      },
      'a statement of another kind': {
        public_keys: publicKeys,
        receipt: { ...receipt, statement: checkpoint.statement, signature: checkpoint.signature },
      },
    };
    for (const name of Object.keys(receipt)) {
      for (const value of ['another', null, { gone: true }]) {
        const altered = { ...receipt, [name]: value } as ErasureReceipt;
        cases[`receipt: ${name} ${JSON.stringify(value)}`] = {
          public_keys: publicKeys,
          receipt: altered,
        };
      }
    }
    for (const name of Object.keys(checkpoint)) {
      const altered = { ...checkpoint, [name]: 7 } as LogCheckpoint;
      cases[`checkpoint: ${name}`] = { public_keys: publicKeys, checkpoint: altered };
    }
    const results = await assertSame(cases);
    assert.equal((results[0] as { id: string }).id, 'token-0');
    assert.ok(results.filter((result) => result === 'altered').length > 20);
    assert.ok(results.filter((result) => result === 'not_signed').length > 5);
    assert.ok(results.filter((result) => result === 'not_trusted').length === 2);
  });
});

test('receipts of a key that was replaced', { skip }, async () => {
  const receipts = stolenKeyReceipts();
  const cases = receipts.map(({ name, receipt, publicKeys }) => [
    name,
    { receipt, public_keys: publicKeys },
  ]);
  const results = await assertSame(Object.fromEntries(cases));
  assert.deepEqual(
    results.map((result) => result !== 'not_trusted'),
    receipts.map(({ isAccepted }) => isAccepted),
  );
});

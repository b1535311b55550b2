/** Receipts, checkpoints and logs are verified without a vault, and every alteration of them is found. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConfigurationError, type ErasureReceipt } from '../../packages/client/src/client.ts';
import {
  type LogVerification,
  ProofError,
  verifyCheckpoint,
  verifyErasureReceipt,
  verifyLog,
} from '../../packages/client/src/verify.ts';
import { parseLine } from '../../src/audit/records.ts';
import { LogVerifier } from '../../src/audit/verify.ts';
import { publicKeyPem } from '../../src/keys/signing.ts';
import { onBothEngines } from '../support/engines.ts';
import { alterationsOf, historyOf } from '../support/log-alterations.ts';
import {
  publicKeyOf,
  type SignedCheckpoint,
  signedCheckpoint,
  signingKeys,
  stolenKeyReceipts,
  tenantId,
} from '../support/signed-statements.ts';
import { tenantsOf } from '../support/tenant.ts';

const hasCode = (code: string) => (error: unknown) => {
  assert.ok(error instanceof ProofError, String(error));
  assert.equal(error.code, code);
  return true;
};

/** What the vault's own command says of the same lines. */
function isIntactForVault(log: string, { publicKeys, checkpoints = [] }: LogVerification): boolean {
  const verifier = new LogVerifier({ trustedKeys: publicKeys, kept: checkpoints });
  const lines = log.split('\n');
  if (lines.at(-1) === '') lines.pop();
  for (const [at, line] of lines.entries()) verifier.take(parseLine(line, at + 1));
  return verifier.finish().findings.length === 0;
}

onBothEngines('proofs of the client', (engine) => {
  const tenants = tenantsOf(engine);

  const history = async () => historyOf(await tenants());

  test('a receipt is genuine as it came, and no attribute of it can be changed', async () => {
    const { tenant, receipt, other, publicKeys } = await history();
    const statement = await verifyErasureReceipt(receipt, { publicKeys });
    assert.equal(statement.id, 'token-0');
    assert.equal(statement.tenant_id, tenant.id);
    assert.equal(new Date(statement.erased_at).getTime(), Date.parse(receipt.erased_at));
    const pem = publicKeys.map(publicKeyPem);
    assert.deepEqual(await verifyErasureReceipt(receipt, { publicKeys: pem }), statement);
    const copy: ErasureReceipt = JSON.parse(JSON.stringify(receipt));
    assert.deepEqual(await verifyErasureReceipt(copy, { publicKeys }), statement);
    const shown = Object.keys(receipt).filter(
      // Introductions are signed each by itself.
      (name) => !/^(?:statement|signature|public_key.*|introductions)$/.test(name),
    ) as (keyof ErasureReceipt)[];
    assert.ok(shown.length > 10);
    for (const name of shown) {
      for (const value of ['another', null, { gone: true }]) {
        if (receipt[name] === value) continue;
        const altered = { ...receipt, [name]: value } as ErasureReceipt;
        await assert.rejects(
          verifyErasureReceipt(altered, { publicKeys }),
          hasCode('altered'),
          name,
        );
      }
    }
    const forged: Partial<ErasureReceipt>[] = [
      { statement: receipt.statement.replace('token-0', 'token-2') },
      { statement: other.statement },
      { statement: `${receipt.statement} ` },
      { signature: other.signature },
      { signature: `${receipt.signature}\n` },
      { signature: 'AAAA' },
      { public_key: Buffer.alloc(32, 1).toString('base64') },
    ];
    for (const change of forged) {
      const altered = { ...receipt, ...change };
      await assert.rejects(verifyErasureReceipt(altered, { publicKeys }), hasCode('not_signed'));
    }
  });

  test('a statement of another key, or of another kind, counts for nothing', async () => {
    const { receipt, checkpoint, publicKeys } = await history();
    const strange = (await history()).publicKeys;
    const others = { publicKeys: strange };
    await assert.rejects(verifyErasureReceipt(receipt, others), hasCode('not_trusted'));
    await assert.rejects(verifyCheckpoint(checkpoint, others), hasCode('not_trusted'));
    const { statement, signature } = checkpoint;
    const mixed = { ...receipt, statement, signature };
    await assert.rejects(verifyErasureReceipt(mixed, { publicKeys }), hasCode('not_signed'));
    for (const none of [[], ['no key'], [`${publicKeys[0]}A`]]) {
      await assert.rejects(verifyCheckpoint(checkpoint, { publicKeys: none }), ConfigurationError);
    }
    const { seq, heads } = await verifyCheckpoint(checkpoint, { publicKeys });
    assert.equal(seq, checkpoint.seq);
    assert.ok(heads.length > 0);
    const altered = { ...checkpoint, seq: seq + 1 };
    await assert.rejects(verifyCheckpoint(altered, { publicKeys }), hasCode('altered'));
  });

  test('an export is intact, in whatever pieces it arrives', async () => {
    const { log, checkpoint, publicKeys } = await history();
    const whole = await verifyLog(log, { publicKeys, checkpoints: [checkpoint] });
    assert.deepEqual(whole.findings, []);
    assert.equal(whole.intact, true);
    assert.equal(whole.entries, log.split('"kind":"entry"').length - 1);
    assert.ok(whole.checkpoints >= 2);
    const bytes = new TextEncoder().encode(log);
    async function* pieces() {
      for (let at = 0; at < bytes.length; at += 777) yield bytes.subarray(at, at + 777);
    }
    const options = { publicKeys, checkpoints: [checkpoint] };
    assert.deepEqual(await verifyLog(pieces(), options), whole);
  });

  test('keys that the log did not introduce are refused next to a checkpoint that it signed', async () => {
    const { log, checkpoint, publicKeys } = await history();
    const strange = (await history()).publicKeys;
    for (const public_keys of [[...publicKeys, ...strange], [...strange, ...publicKeys], strange]) {
      const altered = { ...checkpoint, public_keys };
      await assert.rejects(verifyCheckpoint(altered, { publicKeys }), hasCode('altered'));
      for (const trusted of [publicKeys, public_keys]) {
        const options = { publicKeys: [...trusted, ...publicKeys], checkpoints: [altered] };
        const { findings } = await verifyLog(log, options);
        assert.deepEqual(
          findings.map(({ kind }) => kind),
          ['forged'],
        );
        assert.equal(isIntactForVault(log, options), false);
      }
    }
  });

  test('every line that is changed, removed, repeated or moved is found, as the vault finds it', async () => {
    const { log, checkpoint, publicKeys } = await history();
    const options = { publicKeys, checkpoints: [checkpoint] };
    for (const { place, altered, isCollected, isNewest, isFrame } of alterationsOf(
      log,
      checkpoint,
    )) {
      const { intact } = await verifyLog(altered, options);
      assert.equal(intact, !isCollected && isIntactForVault(altered, options), place);
      if (!isNewest && !isFrame) assert.equal(intact, false, place);
    }
  });

  test('a checkpoint that was kept shows a log that was cut and signed again', async () => {
    const { tenant, first, checkpoint, log, publicKeys } = await history();
    const lines = log.trimEnd().split('\n');
    const heads: [string, number][] = JSON.parse(first.statement).heads;
    const known = new Map(heads.map(([stream, seq]) => [stream, seq]));
    const early = lines.filter((line) => {
      const { kind, seq, stream_id, statement } = JSON.parse(line);
      if (kind === 'checkpoint') return JSON.parse(statement).seq <= first.seq;
      return kind !== 'entry' || seq <= (known.get(stream_id) ?? 0);
    });
    const text = `${early.join('\n')}\n`;
    assert.equal((await verifyLog(text, { publicKeys, checkpoints: [first] })).intact, true);
    const { intact, findings } = await verifyLog(text, { publicKeys, checkpoints: [checkpoint] });
    assert.equal(intact, false);
    assert.deepEqual([...new Set(findings.map(({ kind }) => kind))], ['truncated']);
    assert.ok(findings.every(({ tenant_id }) => tenant_id === tenant.id));
    const forged = { ...checkpoint, signature: first.signature };
    const report = await verifyLog(log, { publicKeys, checkpoints: [forged] });
    assert.deepEqual(
      report.findings.map(({ kind }) => kind),
      ['forged'],
    );
  });
});

test('an export without its beginning hides no stream that only earlier checkpoints know', async () => {
  const keys = signingKeys();
  const newest = signedCheckpoint(keys, { seq: 2, heads: [] });
  const options = { publicKeys: [publicKeyOf(keys)], checkpoints: [newest] };
  const { findings } = await verifyLog('', options);
  assert.deepEqual(
    findings.map(({ kind }) => kind),
    ['truncated'],
  );
});

test('a key of the log that was replaced signs nothing more', async () => {
  const [before, after] = [signingKeys(), signingKeys()];
  const introduction = signedCheckpoint(before, { seq: 1, introduces: publicKeyOf(after) });
  const first = signedCheckpoint(after, { seq: 2, succeeds: [publicKeyOf(before)] }, introduction);
  const soon = first.created_at + 60_000;
  const late = signedCheckpoint(before, { seq: 3, created_at: soon }, first);
  const forged = signedCheckpoint(before, { seq: 3, created_at: soon + 300_000 }, first);
  const kinds = async (...checkpoints: readonly SignedCheckpoint[]) => {
    const lines = [
      { kind: 'begin', tenant_id: tenantId },
      ...checkpoints.map(({ statement, public_key, signature }) => ({
        kind: 'checkpoint',
        ...{ statement, public_key, signature },
      })),
      { kind: 'end', tenant_id: tenantId },
    ];
    const log = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
    const options = { publicKeys: [publicKeyOf(before)] };
    const { findings, intact } = await verifyLog(log, options);
    assert.equal(intact, isIntactForVault(log, options));
    return findings.map(({ kind }) => kind);
  };
  assert.deepEqual(await kinds(introduction, first, late), []);
  assert.deepEqual(await kinds(introduction, first, forged), ['forged']);
});

test('a key of the log that was replaced signs no receipt that is dated after its replacement', async () => {
  for (const { name, receipt, publicKeys, isAccepted } of stolenKeyReceipts()) {
    const verified = verifyErasureReceipt(receipt, { publicKeys });
    if (isAccepted) assert.equal((await verified).id, receipt.id, name);
    else await assert.rejects(verified, hasCode('not_trusted'), name);
  }
});

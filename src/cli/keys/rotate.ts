/** `strongroom keys rotate data|search|fingerprint|webhooks|log`: new keys for tenants, while servers run. */
import { setTimeout as pause } from 'node:timers/promises';
import { keyringStep } from '../../access/key-rotations/keyring-step.ts';
import { openRotations } from '../../access/key-rotations/open-rotations.ts';
import { beginRotation, type Rotation } from '../../access/key-rotations/rotation.ts';
import { viewRotation } from '../../access/key-rotations/view.ts';
import { tenantRowOf } from '../../access/tenants/read.ts';
import { second } from '../../base/clock.ts';
import { newUuid, type TenantId } from '../../base/ids.ts';
import type { Keyring, Purpose } from '../../keys/keyring.ts';
import { perform } from '../../rules/operation.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Config } from '../../runtime/config/config.ts';
import { rotateTenantKeys } from '../../runtime/jobs/rotate-keys.ts';
import type { Vault } from '../../runtime/open-vault.ts';
import { type RotatedPurpose, signingRotations } from '../../store/key-tables.ts';
import { DirectoryLockedError, lockDirectory } from '../../store/sqlite/directory-lock.ts';
import { type Command, jsonFlag, print } from '../terminal/command.ts';
import { withVault } from '../terminal/operator.ts';
import { counted, type Progress, startProgress } from '../terminal/progress.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { operatorsOf, someTenantFlag } from './tenants.ts';

const lookMs = second / 4;
/** Without a sign of a server for so long, the command does the work itself. */
const firstSignMs = 2.5 * second;
const nextSignMs = 15 * second;

const meanings: Readonly<Record<RotatedPurpose, string>> = {
  data: 'the keys that seal data and stored responses',
  search: 'the keys of search terms',
  fingerprint: 'the keys of fingerprints, which change with it',
  webhooks: 'the key pairs that sign deliveries to webhooks',
  log: 'the keys that sign the log, its checkpoints and receipts',
};

/** What follows a new key. */
const effects: Readonly<Record<RotatedPurpose, string>> = {
  data: 'seal all rows again',
  search: 'seal all rows again',
  fingerprint: 'seal all rows again',
  webhooks: 'sign with the keys before as well for a day',
  log: 'introduce the new keys in the log, signed by those before',
};

export function keysRotate(purpose: RotatedPurpose): Command {
  return {
    summary:
      `Replace ${meanings[purpose]}, and ${effects[purpose]}. Running servers do the work, or this command where ` +
      'none runs. It ends when the rotation is finished; interrupted, the servers go on.',
    flags: { tenant: someTenantFlag, json: jsonFlag },
    examples: ['', '--tenant acme --json'],
    run: (flags, terminal) =>
      withVault(terminal, async (vault, config) => {
        const operators = await operatorsOf(vault, flags);
        const tenants = new Set(operators.map(({ tenant }) => tenant.id));
        if ((await openOf(vault, { purpose, tenants })).length > 0)
          throw new UnderWayError(purpose);
        for (const actor of operators) {
          const by = { store: vault.store, actor };
          await perform(by, beginRotation(vault, actor, purpose));
        }
        await untilFinished(vault, config, { purpose, tenants, terminal });
        const rotations = await Promise.all(
          operators.map(async ({ tenant }) => {
            const row = await vault.store.get('key_rotations', { tenant_id: tenant.id, purpose });
            const keyring = await currentKeyring(vault, tenant);
            if (!isRotated(purpose, tenant.keyring, keyring)) throw new EndedOutsideError(purpose);
            return row ? [viewRotation(row, keyring)] : [];
          }),
        );
        const shown = rotations.flat();
        const rows = shown.reduce((sum, { rows_done }) => sum + rows_done, 0);
        const unreadable = shown.reduce((sum, one) => sum + one.unreadable, 0);
        print(terminal, flags, {
          json: { rotations: shown },
          line: [
            `Rotated the ${purpose} keys of ${counted(tenants.size, 'tenant')}${
              sealsAgain(purpose) ? `, and sealed ${counted(rows, 'row')} again` : ''
            }.`,
            ...(unreadable > 0
              ? [`Altered outside the vault, and left as they were: ${counted(unreadable, 'row')}.`]
              : []),
            'See the earlier versions with "strongroom keys list"; those without rows can be destroyed.',
          ].join('\n'),
        });
        return 0;
      }),
  };
}

function sealsAgain(purpose: RotatedPurpose): boolean {
  return !signingRotations.some((signing) => signing === purpose);
}

/** Another rotation of the purpose is under way. */
class UnderWayError extends Error {
  override readonly name = 'RotationError';

  constructor(purpose: RotatedPurpose) {
    super(`a rotation of the ${purpose} key is under way. Wait until it has finished`);
  }
}

/** Its row was altered before the vault had made a key, or the tenant was. */
class EndedOutsideError extends Error {
  override readonly name = 'RotationError';

  constructor(purpose: RotatedPurpose) {
    super(
      `a rotation of the ${purpose} key was ended outside the vault and made no key. Run the command again, and ` +
        'find out who wrote to the database: strongroom logs verify --state',
    );
  }
}

async function currentKeyring({ tenants }: Vault, tenant: Tenant): Promise<Keyring> {
  return tenants.keyringOf(await tenantRowOf(tenants, tenant));
}

/** In the keyrings, which cannot be altered outside the vault as rows of rotations can. */
function isRotated(purpose: RotatedPurpose, before: Keyring, after: Keyring): boolean {
  const key = keyOf[purpose];
  return after.activeVersion(key) > before.activeVersion(key);
}

const keyOf: Readonly<Record<RotatedPurpose, Purpose>> = {
  data: 'data',
  search: 'search',
  fingerprint: 'fingerprint',
  webhooks: 'webhook',
  log: 'audit',
};

interface AwaitedRotations {
  readonly purpose: RotatedPurpose;
  readonly tenants: ReadonlySet<TenantId>;
}

/** The same, for the operator who waits. */
interface WatchedRotations extends AwaitedRotations {
  readonly terminal: Terminal;
}

async function untilFinished(
  vault: Vault,
  config: Config,
  { purpose, tenants, terminal }: WatchedRotations,
): Promise<void> {
  const { clock } = vault;
  const stopping = new AbortController();
  const holder = newUuid(vault.random);
  const job = rotateTenantKeys({ ...vault, holder, isAlone: () => isAlone(config) });
  let progress: Progress | undefined;
  let sign = '';
  let signAt = performance.now();
  let patienceMs = isAlone(config) ? 0 : firstSignMs;
  try {
    for (;;) {
      const open = await openOf(vault, { purpose, tenants });
      const isOver = open.length === 0 && (await isOverInKeyrings(vault, { purpose, tenants }));
      if (isOver) return;
      progress ??= progressOf(terminal, open);
      progress?.report(open.reduce((sum, { rows_done }) => sum + rows_done, 0));
      // What the command does itself is no sign of a server.
      const others = open.filter((one) => one.is_paused === 1 || one.holder !== holder);
      const next = others.map(({ tenant_id, revision }) => `${tenant_id} ${revision}`).join();
      const isWorkedOn = others.some(
        ({ until, is_paused }) => is_paused === 1 || until > clock.now(),
      );
      if (isWorkedOn || (sign !== '' && next !== sign)) {
        signAt = performance.now();
        patienceMs = nextSignMs;
      }
      sign = next;
      if (performance.now() - signAt >= patienceMs) {
        await job.run(stopping.signal);
        patienceMs = 0;
        sign = '';
      }
      await pause(lookMs);
    }
  } finally {
    progress?.finish();
  }
}

/** A rotation whose row an attacker has removed is open in the keyring, and servers write its row again. */
async function isOverInKeyrings(
  vault: Vault,
  { purpose, tenants }: AwaitedRotations,
): Promise<boolean> {
  for (const id of tenants) {
    const tenant = await vault.tenants.find(id);
    if (tenant === undefined) continue;
    if (keyringStep(await currentKeyring(vault, tenant))?.purpose === purpose) return false;
  }
  return true;
}

async function openOf(
  vault: Vault,
  { purpose, tenants }: AwaitedRotations,
): Promise<readonly Rotation[]> {
  const { open } = await openRotations(vault);
  return open.filter((one) => one.purpose === purpose && tenants.has(one.tenant_id));
}

/** Undefined as long as the rows are not counted. */
function progressOf(terminal: Terminal, open: readonly Rotation[]): Progress | undefined {
  const total = open.reduce((sum, { rows_total }) => sum + (rows_total ?? 0), 0);
  return total === 0 ? undefined : startProgress(terminal, 'rows', total);
}

/** True where no server runs on the embedded database. One that starts now reads the keys as they are then. */
function isAlone({ databaseUrl, dataDir }: Config): boolean {
  if (databaseUrl !== undefined) return false;
  try {
    const lock = lockDirectory(dataDir);
    lock.release();
    return lock.isHeld;
  } catch (error) {
    if (error instanceof DirectoryLockedError) return false;
    throw error;
  }
}

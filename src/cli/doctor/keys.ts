/** The keys of tenants: how old they are, what is under earlier ones, and whether a rotation is under way or stuck. */
import { listTenantKeys } from '../../access/key-rotations/key-list.ts';
import { type KeyringStep, keyringStep } from '../../access/key-rotations/keyring-step.ts';
import { type Clock, day, type Instant, minute } from '../../base/clock.ts';
import { type Keyring, type Purpose, purposes } from '../../keys/keyring.ts';
import type { Config } from '../../runtime/config/config.ts';
import type { RotatedPurpose } from '../../store/key-tables.ts';
import type { ReadOnlyStore } from '../../store/open/read-only.ts';
import { rotationsUnderWay } from '../../store/queries/key-rotations.ts';
import type { Row } from '../../store/tables.ts';
import { counted } from '../terminal/progress.ts';
import { type Finding, reporter } from './finding.ts';

/** A server looks for keys that are due every ten minutes, and begins rotations of some tenants at a time. */
const lateMs = day;

/** Tenants whose rows are counted: it reads all rows of them. */
const countedTenantsMax = 100;

/** The command that replaces the active key of a purpose; absent for keys that are not rotated. */
const rotatedBy: Readonly<Partial<Record<Purpose, RotatedPurpose>>> = {
  data: 'data',
  reply: 'data',
  search: 'search',
  fingerprint: 'fingerprint',
  audit: 'log',
  webhook: 'webhooks',
};

/** As `keys list` names them. */
const names: Readonly<Partial<Record<Purpose, string>>> = { audit: 'log', webhook: 'webhooks' };

interface KeptKeyring {
  readonly row: Row<'tenants'>;
  readonly keyring: Keyring;
}

/** What the keyrings of the tenants say, one after the other. */
export class KeyAges {
  readonly #oldest = new Map<Purpose, Instant>();
  /** How many tenants have an active key that was made before the limit. */
  readonly #aged = new Map<Purpose, number>();
  readonly #withEarlier: KeptKeyring[] = [];
  /** Rotations that the keyrings say are under way. */
  readonly unfinished: (KeyringStep & Pick<Row<'tenants'>, 'tenant_id'>)[] = [];
  #earlierTenants = 0;
  #tenants = 0;
  readonly #before: number;

  constructor({ clock, keyMaxAgeMs }: { readonly clock: Clock } & Pick<Config, 'keyMaxAgeMs'>) {
    this.#before = clock.now() - keyMaxAgeMs - lateMs;
  }

  add(row: Row<'tenants'>, keyring: Keyring): void {
    this.#tenants += 1;
    for (const purpose of purposes) {
      const active = keyring.versions[purpose][keyring.activeVersion(purpose) - 1];
      const made = active?.createdAt ?? row.created_at;
      const oldest = this.#oldest.get(purpose);
      if (oldest === undefined || made < oldest) this.#oldest.set(purpose, made);
      if (made < this.#before) this.#aged.set(purpose, (this.#aged.get(purpose) ?? 0) + 1);
    }
    const step = keyringStep(keyring);
    if (step) this.unfinished.push({ ...step, tenant_id: row.tenant_id });
    if (!keyring.versions.data.some(({ state }) => state === 'decrypt_only')) return;
    this.#earlierTenants += 1;
    if (this.#withEarlier.length < countedTenantsMax) this.#withEarlier.push({ row, keyring });
  }

  async report(
    store: ReadOnlyStore,
    { clock, keyMaxAgeMs, tenants }: KeyAgeLimit & { readonly tenants: number },
  ): Promise<readonly Finding[]> {
    const { ok, warning } = reporter('keys');
    const ages = [...this.#oldest].map(
      ([purpose, made]) => `${nameOf(purpose)} ${daysSince(clock.now(), made)}`,
    );
    const limit = Number.isFinite(keyMaxAgeMs)
      ? `STRONGROOM_KEY_MAX_AGE is ${Math.floor(keyMaxAgeMs / day)} days`
      : 'STRONGROOM_KEY_MAX_AGE is off';
    // Where each keyring is a request to a service, some of them are opened.
    const which = this.#tenants < tenants ? ` of ${this.#tenants} of ${tenants} tenants` : '';
    return [
      ok(`age of the oldest active keys${which} in days: ${ages.join(', ')}; ${limit}`),
      ...[...this.#aged].flatMap(([purpose, tenants]) => {
        const by = rotatedBy[purpose];
        if (by === undefined) return [];
        const message = `the ${nameOf(purpose)} key of ${counted(tenants, 'tenant')} is older than that`;
        const command = `strongroom keys rotate ${by}`;
        const isByAge = by === 'data';
        return [
          warning(
            message,
            isByAge
              ? `A running server replaces it. If none runs, run ${command}.`
              : `Run ${command}.`,
          ),
        ];
      }),
      ...(await this.#reportRows(store)),
    ];
  }

  async #reportRows(store: ReadOnlyStore): Promise<readonly Finding[]> {
    const { ok, warning } = reporter('keys');
    let rows = 0;
    let overdue = 0;
    let unused = 0;
    for (const { row, keyring } of this.#withEarlier) {
      const tools = { store: { scan: store.select }, tenants: { keyringOf: async () => keyring } };
      for (const key of await listTenantKeys(tools, row)) {
        if (key.state !== 'decrypt_only' || key.rows === null) continue;
        if (key.purpose === 'data') {
          rows += key.rows;
          if (Date.parse(key.created_at) < this.#before) overdue += key.rows;
        }
        if (key.rows === 0) unused += 1;
      }
    }
    if (this.#earlierTenants === 0) return [];
    const all = this.#withEarlier.length;
    const which =
      all < this.#earlierTenants
        ? `${all} of ${this.#earlierTenants} tenants that have any`
        : counted(all, 'tenant');
    const text =
      `${counted(rows, 'row')} of ${which} are under earlier data keys; ` +
      `${counted(unused, 'earlier key')} have no rows and can be destroyed (strongroom keys list)`;
    if (overdue === 0) return [ok(text)];
    const advice =
      'Running servers seal them again. If none runs, run strongroom keys rotate data.';
    return [
      ok(text),
      warning(
        `${counted(overdue, 'row')} of them are under keys older than STRONGROOM_KEY_MAX_AGE`,
        advice,
      ),
    ];
  }
}

interface KeyAgeLimit extends Pick<Config, 'keyMaxAgeMs'> {
  readonly clock: Clock;
}

function nameOf(purpose: Purpose): string {
  return names[purpose] ?? purpose;
}

function daysSince(now: Instant, made: Instant): number {
  return Math.max(0, Math.floor((now - made) / day));
}

/** Servers note each few seconds that they work on a rotation, and each step takes seconds. */
const stuckMs = minute;

/** Rotations of tenants' keys that are under way, by their rows and by the keyrings. */
export async function checkRotations(
  store: ReadOnlyStore,
  { clock, unfinished }: { readonly clock: Clock } & Pick<KeyAges, 'unfinished'>,
): Promise<readonly Finding[]> {
  const { ok, warning, problem } = reporter('key rotation');
  const rows = await store.select(rotationsUnderWay);
  const named = new Set(rows.map(({ tenant_id, purpose }) => `${tenant_id} ${purpose}`));
  const hidden = unfinished.filter((one) => !named.has(`${one.tenant_id} ${one.purpose}`));
  const altered = hidden.map(({ tenant_id, purpose }) =>
    problem(
      `the rotation of the ${purpose} key of tenant ${tenant_id} is not finished, and its row does not say so`,
      'It was altered or removed outside the vault. Run strongroom keys resume, and find out who wrote to the ' +
        'database: strongroom logs verify --state.',
    ),
  );
  if (rows.length === 0 && altered.length > 0) return altered;
  if (rows.length === 0) return [ok('no rotation of keys of tenants is under way')];
  const underWay = [...Map.groupBy(rows, ({ purpose }) => purpose)].flatMap(
    ([purpose, ofPurpose]) => {
      const done = ofPurpose.reduce((sum, { rows_done }) => sum + rows_done, 0);
      const total = ofPurpose.reduce((sum, { rows_total }) => sum + (rows_total ?? 0), 0);
      const tenants = counted(ofPurpose.length, 'tenant');
      const text = `a rotation of ${purpose} keys of ${tenants} is under way: ${done} of ${total} rows`;
      const paused = ofPurpose.filter(({ is_paused }) => is_paused === 1);
      const stuck = ofPurpose.filter((row) => row.is_paused === 0 && isStuck(row, rows, clock));
      return [
        ok(text),
        ...(paused.length > 0
          ? [
              warning(
                `that of ${counted(paused.length, 'tenant')} is paused`,
                'Run strongroom keys resume.',
              ),
            ]
          : []),
        ...(stuck.length > 0
          ? [
              warning(
                `that of ${counted(stuck.length, 'tenant')} is stuck: no server has worked on it for a minute`,
                'Start a server; its log says why a rotation fails. strongroom logs verify --state finds altered rows.',
              ),
            ]
          : []),
      ];
    },
  );
  return [...underWay, ...altered];
}

/** One that waits is not stuck while another one of its tenant goes on, or is paused. */
function isStuck(
  { tenant_id, phase }: Row<'key_rotations'>,
  rows: readonly Row<'key_rotations'>[],
  clock: Clock,
): boolean {
  const ofTenant = rows.filter((row) => row.tenant_id === tenant_id);
  if (phase === 'waiting' && ofTenant.some((row) => row.phase !== 'waiting')) return false;
  return ofTenant.every(({ until, phase_at }) => Math.max(until, phase_at) < clock.now() - stuckMs);
}

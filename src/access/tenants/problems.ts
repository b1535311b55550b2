/** What needs attention of a tenant's keys, of those of its applications, and of its quotas. */
import { type Clock, day, minute, parseInstant } from '../../base/clock.ts';
import { provenRows } from '../../rules/proven-row.ts';
import { limited, type QuotaName } from '../../rules/settings.ts';
import type { Tenant, Tenants } from '../../rules/tenant.ts';
import type { ProblemCheck, TenantProblem } from '../../rules/tenant-problems.ts';
import { webhookCount } from '../../store/event-queries/webhooks.ts';
import { applicationCount, unusedKeysBefore } from '../../store/queries/applications.ts';
import { rotationsOf } from '../../store/queries/key-rotations.ts';
import { proxyCount } from '../../store/queries/proxies.ts';
import { reactorCount } from '../../store/queries/reactors.ts';
import { storedBytesOf } from '../../store/queries/stored-bytes.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import { tenantRowOf } from './read.ts';

interface ProblemReading {
  readonly store: Store;
  readonly tenants: Tenants;
  readonly clock: Clock;
  readonly keyMaxAgeMs: number;
}

/** A server looks for keys that are due every ten minutes, and begins rotations of some tenants at a time. */
const lateMs = day;

export const oldKeys: ProblemCheck<ProblemReading> = {
  permission: 'keys:rotate',
  find: async ({ tenants, keyMaxAgeMs }, tenant, now) => {
    if (!Number.isFinite(keyMaxAgeMs)) return [];
    const { versions } = tenant.keyring;
    const active = versions.data[tenant.keyring.activeVersion('data') - 1];
    const made = active?.createdAt ?? (await tenantRowOf(tenants, tenant)).created_at;
    if (made >= now - keyMaxAgeMs - lateMs) return [];
    return [
      {
        kind: 'old_key',
        severity: 'warning',
        message: `The data key is older than ${Math.floor(keyMaxAgeMs / day)} days.`,
        advice:
          'Rotate it. If it should rotate by itself, the log of the server says why it does not.',
        ...ofTenant(tenant),
      },
    ];
  },
};

const stuckMs = minute;

export const stuckRotations: ProblemCheck<ProblemReading> = {
  permission: 'keys:rotate',
  find: async ({ store }, tenant, now) => {
    const rows = await store.select(rotationsOf(tenant.id));
    const underWay = rows.filter(({ phase }) => phase !== 'finished');
    const isMoving = (row: Row<'key_rotations'>) =>
      Math.max(row.until, row.phase_at) >= now - stuckMs;
    const isStuck = underWay.length > 0 && !underWay.some(isMoving);
    return underWay.flatMap(({ purpose, is_paused }): readonly TenantProblem[] => {
      const about = { kind: 'key_rotation', severity: 'warning', ...ofTenant(tenant) } as const;
      if (is_paused === 1) {
        return [
          {
            ...about,
            message: `The rotation of the ${purpose} key is paused.`,
            advice: 'Resume it.',
          },
        ];
      }
      if (!isStuck) return [];
      const message = `The rotation of the ${purpose} key is stuck: no server has worked on it for a minute.`;
      return [{ ...about, message, advice: 'Ask the operator: the log of the server says why.' }];
    });
  },
};

const unusedDays = 90;
/** Who sees so many deletes some of them first. */
const unusedMax = 100;

export const unusedKeys: ProblemCheck<ProblemReading> = {
  permission: 'application:read',
  find: async ({ store }, tenant, now) => {
    const before = parseInstant(now - unusedDays * day);
    const query = unusedKeysBefore(tenant.id, before, unusedMax);
    const rows = await store.scan(query, { tenant: tenant.id, name: 'problems' });
    return provenRows(tenant, 'api_keys', rows).rows.map(({ key_id, application_id }) => ({
      kind: 'unused_key',
      severity: 'warning',
      message: `The key ${key_id} was not used for ${unusedDays} days.`,
      advice: 'Delete it if nobody needs it.',
      entity_type: 'application',
      entity_id: application_id,
    }));
  },
};

/** From this share of a limit on. */
const nearlyFull = 0.8;

export const nearQuotas: ProblemCheck<ProblemReading> = {
  permission: 'tenant:read',
  find: async ({ store }, tenant) => {
    const all = { tenant: tenant.id, ids: undefined, name: undefined, kinds: undefined };
    const [applications] = await store.select(applicationCount(all));
    const [proxies] = await store.select(proxyCount(all));
    const [reactors] = await store.select(reactorCount(all));
    const [webhooks] = await store.select(webhookCount(tenant.id));
    const stored = await store.select(storedBytesOf(tenant.id));
    const used: Partial<Record<QuotaName, number>> = {
      application_limit: applications?.count ?? 0,
      proxy_limit: proxies?.count ?? 0,
      reactor_limit: reactors?.count ?? 0,
      webhook_limit: webhooks?.count ?? 0,
      token_storage: stored.reduce((sum, { bytes }) => sum + Number(bytes), 0),
    };
    return (Object.keys(used) as QuotaName[]).flatMap((name) => {
      const [count, limit] = [used[name] ?? 0, tenant.quotas[name]];
      if (count === 0 || count < nearlyFull * limit) return [];
      return [
        {
          kind: 'quota',
          severity: count >= limit ? 'problem' : 'warning',
          message: `${count} of ${limit} ${nounOf(name)} are used (quota ${name}).`,
          advice: 'Delete what nobody needs, or ask the operator for more.',
          ...ofTenant(tenant),
        } as const,
      ];
    });
  },
};

const nounOf = (name: QuotaName): string =>
  name in limited ? limited[name as keyof typeof limited] : 'bytes of tokens';

const ofTenant = ({ id }: Tenant) => ({ entity_type: 'tenant', entity_id: id });

/** Webhooks that get nothing, and deliveries that failed. */
import { provenRows } from '../rules/proven-row.ts';
import type { ProblemCheck, TenantProblem } from '../rules/tenant-problems.ts';
import { allWebhooks, deliveryPage } from '../store/event-queries/webhooks.ts';
import type { Store } from '../store/store.ts';

/** Failed deliveries of a webhook are counted up to this number. */
const countedMax = 100;

export const failingWebhooks: ProblemCheck<{ readonly store: Store }> = {
  permission: 'webhook:read',
  find: async ({ store }, tenant) => {
    const rows = await store.select(allWebhooks(tenant.id));
    const { rows: proven } = provenRows(tenant, 'webhooks', rows);
    const found: TenantProblem[] = [];
    for (const { webhook_id: webhook, name, status } of proven) {
      const about = { entity_type: 'webhook', entity_id: webhook };
      if (status === 'disabled') {
        found.push({
          kind: 'webhook',
          severity: 'problem',
          message: `The webhook ${name} is disabled and gets no events.`,
          advice: 'Repair its receiver, and then enable it. What it missed can be replayed.',
          ...about,
        });
        continue;
      }
      const page = { tenant: tenant.id, webhook, state: 'failed', before: undefined } as const;
      const { length: failed } = await store.scan(deliveryPage({ ...page, limit: countedMax }), {
        tenant: tenant.id,
        name: 'problems',
      });
      if (failed === 0) continue;
      const count = failed < countedMax ? `${failed}` : `${failed} or more`;
      found.push({
        kind: 'deliveries',
        severity: 'warning',
        message: `Deliveries to the webhook ${name} have failed: ${count}.`,
        advice: 'Look at their attempts, and send them again once the receiver works.',
        ...about,
      });
    }
    return found;
  },
};

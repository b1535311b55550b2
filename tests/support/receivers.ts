/** Receivers of webhooks in tests: they record what arrives, and tests wait for it. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { type ApplicationId, newUuid, type TenantId, type WebhookId } from '../../src/base/ids.ts';
import { systemEntry } from '../../src/rules/log-entries.ts';
import type { Vault } from '../../src/runtime/open-vault.ts';
import type { WebhookBody } from '../../src/webhooks/definition.ts';
import { eventTypeNames } from '../../src/webhooks/events/types.ts';
import { webhookRow } from '../../src/webhooks/resource.ts';
import { answer, type Behavior, type Destination, startDestination } from './destination.ts';
import { type Lender, temporaryDirectory } from './temporary.ts';

/** An event as a receiver sees it. */
export interface ReceivedEvent {
  readonly id: string;
  readonly type: string;
  readonly timestamp: string;
  readonly tenant_id: string;
  readonly trace_id?: string;
  readonly sequence: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests assert on whatever came
  readonly data: any;
}

export interface Arrival {
  readonly event: ReceivedEvent;
  readonly delivered_at: string;
  readonly body: Buffer;
  /** By their names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly connection: number;
}

export interface Receiver {
  readonly destination: Destination;
  readonly url: string;
  /** Requests whose body was parsed, in the order in which they came; those that were refused as well. */
  readonly arrivals: Arrival[];
  /** Resolves once that is so of what has arrived. */
  until(isSo: (arrivals: readonly Arrival[]) => boolean): Promise<void>;
  /** With what each request is answered from now on, which has arrived by then. */
  behave(behavior: Behavior): void;
}

export async function startReceiver(
  t: Lender,
  options: Parameters<typeof startDestination>[1] = {},
): Promise<Receiver> {
  const destination = await startDestination(t, options);
  const arrivals: Arrival[] = [];
  let waiting: (() => void)[] = [];
  let behavior: Behavior = answer();
  destination.behave(async (exchange) => {
    const request = await exchange.received;
    const { event, delivered_at } = JSON.parse(request.body.toString());
    const { body, headers, connection } = request;
    arrivals.push({ event, delivered_at, body, headers: headersOf(headers), connection });
    const woken = waiting;
    waiting = [];
    for (const wake of woken) wake();
    await behavior(exchange);
  });
  return {
    destination,
    url: `${destination.url}/hook`,
    arrivals,
    until: async (isSo) => {
      while (!isSo(arrivals)) await new Promise<void>((resolve) => waiting.push(resolve));
    },
    behave: (next) => {
      behavior = next;
    },
  };
}

function headersOf(headers: readonly string[]): Record<string, string> {
  const named: Record<string, string> = {};
  for (let at = 0; at < headers.length; at += 2) {
    named[(headers[at] ?? '').toLowerCase()] = headers[at + 1] ?? '';
  }
  return named;
}

/** The variables under which a vault may call these receivers. */
export function allowing(t: Lender, receivers: readonly Receiver[]): Record<string, string> {
  const file = join(temporaryDirectory(t), 'authorities.pem');
  const destinations = receivers.map(({ destination }) => destination);
  writeFileSync(file, destinations.map(({ authority }) => authority.cert).join('\n'));
  return {
    STRONGROOM_OUTBOUND_ALLOW: destinations.map(({ name }) => name).join(','),
    STRONGROOM_OUTBOUND_CA: file,
  };
}

/** Signs what goes to every webhook that {@link addWebhook} makes. */
export const webhookSecret = `whsec_${Buffer.alloc(32, 's').toString('base64')}`;

/** Enabled, for every type, as the tenant's own request would make it. */
export async function addWebhook(
  { store, tenants, clock, random }: Vault,
  tenantId: TenantId,
  {
    id = newUuid<WebhookId>(random),
    ...given
  }: Partial<WebhookBody> & {
    readonly url: string;
    readonly id?: WebhookId;
  },
): Promise<WebhookId> {
  const tenant = await tenants.find(tenantId);
  if (tenant === undefined) throw new Error('there is no such tenant');
  const body: WebhookBody = {
    notify_email: null,
    events: eventTypeNames,
    ordered: false,
    secrets: [{ text: webhookSecret, ends_at: null }],
    ...given,
  };
  const at = clock.now();
  const row = webhookRow(
    tenant,
    { body, random },
    {
      tenant_id: tenantId,
      webhook_id: id,
      version: 1,
      name: 'A receiver',
      status: 'enabled',
      created_by: newUuid<ApplicationId>(random),
      created_at: at,
      modified_by: null,
      modified_at: null,
    },
  );
  const entry = systemEntry({ tenant: tenantId, at, entity: 'webhook', id, operation: 'create' });
  const { conflict } = await store.commit({ insert: { webhooks: [row] }, entries: [entry] });
  if (conflict !== undefined) throw new Error(conflict);
  return id;
}

/** Fails unless it is signed with that secret by Standard Webhooks, now. */
export function verifyStandard({ body, headers }: Arrival, secret: string = webhookSecret): void {
  new StandardWebhook(secret).verify(body, { ...headers });
}

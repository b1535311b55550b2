/** The parts of the thread that delivers events to webhooks: its connections and its caches. */

import { setTimeout as timeout } from 'node:timers/promises';
import { createSigningPairs } from '../access/keyrings/signing-pairs.ts';
import type { VaultKeys } from '../access/keyrings/vault-keys.ts';
import { reasonOf } from '../base/errors.ts';
import { createTimedUuids } from '../base/ids.ts';
import type { Metrics } from '../base/telemetry/metrics.ts';
import { createRareWarning } from '../base/telemetry/rare-warning.ts';
import { createForward } from '../outbound/forward.ts';
import { createLeases } from '../queue/leases.ts';
import { createSlots } from '../queue/slots.ts';
import { type Deliverer, startDeliverer } from '../webhooks/deliveries/deliverer.ts';
import { createMessages } from '../webhooks/deliveries/message.ts';
import { createNames } from '../webhooks/deliveries/names.ts';
import { createRecentEnvelopes } from '../webhooks/deliveries/prepare.ts';
import { createSettlements } from '../webhooks/deliveries/settlements.ts';
import { createWebhooks } from '../webhooks/deliveries/webhooks-of.ts';
import type { Config } from './config/config.ts';
import type { Process } from './process.ts';

/** Attempts under way at once, to all receivers together: as many as a thousand that hang for 15 seconds each. */
const attemptsOfAllMax = 1_024;

/** More than 20 webhooks have, a share for tenants that were given a larger quota. */
const attemptsOfTenantMax = 256;

/**
 * The attempts themselves are limited before they come here. One that is over frees its place here a moment later
 * than there, so as many may wait for that moment.
 */
const limits = {
  destinationMax: attemptsOfAllMax,
  partitionMax: attemptsOfAllMax,
  totalMax: attemptsOfAllMax,
  waitingMax: attemptsOfAllMax,
  waitingOfPartitionMax: attemptsOfAllMax,
};

export interface DeliveringTools
  extends Pick<Process, 'store' | 'tenants' | 'clock' | 'random' | 'log' | 'quarantine'> {
  readonly vaultKeys: VaultKeys;
  readonly metrics: Pick<Metrics, 'count' | 'delivery'>;
  /** The name of this server in leases, made at its start. */
  readonly holder: string;
  /** The release. */
  readonly version: string;
}

export function createDelivering(
  tools: DeliveringTools,
  config: Pick<Config, 'outbound' | 'headerPrefixes'>,
): Deliverer {
  const { store, clock, random, metrics, log, version, holder, quarantine } = tools;
  const { headerPrefixes } = config;
  const warn = createRareWarning('events were not delivered yet; they are tried again', {
    log,
    clock,
  });
  const pairs = createSigningPairs(tools);
  return startDeliverer({
    ...tools,
    leases: createLeases({ name: 'deliveries', store, clock, holder, quarantine }),
    newDeliveryId: createTimedUuids(random),
    webhooks: createWebhooks({ store, clock }),
    withNames: createNames({ store, clock }),
    forward: createForward({ ...config.outbound, vaultName: tools.vaultKeys.name }, limits),
    messages: createMessages({ pairs, clock, headerPrefixes, version }),
    recordDelivery: createSettlements({ store, pause: timeout }),
    recent: createRecentEnvelopes(clock),
    slots: createSlots({ allMax: attemptsOfAllMax, tenantMax: attemptsOfTenantMax }),
    onAttempt: (webhook, outcome) => metrics.delivery({ webhook, outcome }),
    onFailure: (error) => {
      metrics.count('delivery_failures');
      log.debug('events were not delivered', { reason: reasonOf(error) });
      warn(1);
    },
    pause: (ms, signal) => timeout(ms, undefined, { signal }).catch(() => undefined),
  });
}

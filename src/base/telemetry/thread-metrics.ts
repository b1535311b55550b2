/** The metrics of one thread. Labels are ours, never a caller's. */
import {
  AggregatorRegistry,
  Counter,
  Gauge,
  Histogram,
  type MetricObjectWithValues,
  type MetricValue,
  Registry,
} from 'prom-client';
import { second } from '../clock.ts';
import type { ObservedGroup, StoreState } from './store-work.ts';

/** Failures that did not fail a request, and refusals of requests: one row each. */
const counters = {
  authentication_failures: 'Requests refused because their key is unknown, expired or altered',
  rate_limited: 'Requests refused because of a rate limit',
  overloaded: 'Requests refused because too much waited already',
  storage_refused: 'Requests refused because they store more and the disk is nearly full',
  mask_failures: 'Stored masks that could not be evaluated, so that data was left out',
  log_export_failures: 'Log entries that could not be written to the export',
  bank_provider_failures: 'Bank verifications without a status because the provider failed',
  checkpoint_sink_failures:
    'Attempts to push a log checkpoint that failed, or found the queue full',
  integrity_failures: 'Refusals because of stored rows that are not as the vault wrote them',
  stored_bytes_corrections:
    'Tenants whose counters of stored bytes differed from what is stored and were corrected',
  job_failures: 'Runs of background jobs that failed and will be tried again',
  thread_restarts: 'RequestWorker threads that ended unasked and were replaced',
  delivery_failures: 'Times that work on deliveries to webhooks failed in the vault itself',
  trace_spans_lost: 'Spans that were not delivered to the trace collector',
} as const;

/** Kinds of alerts. */
const alertKinds = [
  'altered_log',
  'bin',
  'egress_budget',
  'export',
  'honey_token',
  'new_address',
  'refusals',
  'reveals',
  'stalled',
] as const;

export type CounterName = keyof typeof counters;

export interface RequestFacts {
  readonly method: string;
  /** The pattern, such as `/tokens/:id`; `none` where no route matched. */
  readonly route: string;
  readonly status: number;
  readonly seconds: number;
}

export interface ProxyCallFacts {
  /** The id of the proxy; `ephemeral` for calls that name their own destination. */
  readonly proxy: string;
  /** The status of the destination; `undefined` if it did not respond. */
  readonly status: number | undefined;
  readonly seconds: number;
}

export interface DeliveryFacts {
  /** The id of the webhook. */
  readonly webhook: string;
  /** `retried`: the attempt failed, and another one follows. */
  readonly outcome: 'delivered' | 'retried' | 'failed';
}

export interface ReactorCallFacts {
  readonly reactor: string;
  readonly outcome: 'completed' | 'failed';
  readonly seconds: number;
}

/** All counts, as data that can be posted to another thread. */
export type Counts = readonly MetricObjectWithValues<MetricValue<string>>[];

export interface ThreadMetrics {
  count(name: CounterName, times?: number): void;
  request(facts: RequestFacts): void;
  proxyCall(facts: ProxyCallFacts): void;
  /** Records the end of an attempt to deliver an event. */
  delivery(facts: DeliveryFacts): void;
  reactorCall(facts: ReactorCallFacts): void;
  alert(kind: (typeof alertKinds)[number]): void;
  /** Records the commit of a group of changes. */
  group(group: ObservedGroup): void;
  /** Also exposes the queues of this store, until it is closed. */
  watchStore(state: () => StoreState): void;
  counts(): Promise<Counts>;
}

/** Bounds in seconds, from a cached read to the timeout of a client. */
const durationBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];
/** Bounds in seconds for other hosts, up to the longest timeout of a proxy. */
const callBuckets = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 60];
/** Bounds in seconds for code, up to the time limit of an asynchronous call. */
const runBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30, 300, 900];
const groupBuckets = [1, 2, 4, 8, 16, 32, 64, 128, 256];

export function createThreadMetrics(): ThreadMetrics {
  const registry = new Registry();
  const registers = [registry];
  const durations = new Histogram({
    name: 'strongroom_request_duration_seconds',
    help: 'Time from the first byte of a request to the end of its response',
    labelNames: ['method', 'route', 'status'],
    buckets: durationBuckets,
    registers,
  });
  const calls = new Histogram({
    name: 'strongroom_proxy_call_duration_seconds',
    help: 'Time from sending the request of a proxy to the head of the response of its destination',
    labelNames: ['proxy', 'status'],
    buckets: callBuckets,
    registers,
  });
  const deliveries = new Counter({
    name: 'strongroom_webhook_attempts_total',
    help: 'Attempts to deliver an event to a webhook, by what came of them',
    labelNames: ['webhook', 'outcome'],
    registers,
  });
  const runs = new Histogram({
    name: 'strongroom_reactor_call_duration_seconds',
    help: 'Time that the code of a reactor took, with its wait for a process',
    labelNames: ['reactor', 'outcome'],
    buckets: runBuckets,
    registers,
  });
  const alerts = new Counter({
    name: 'strongroom_alerts_total',
    help: 'Alerts about unusual use, which are entries of the log as well',
    labelNames: ['kind'],
    registers,
  });
  // Prometheus sees no increase of a series that begins with 1.
  for (const kind of alertKinds) alerts.inc({ kind }, 0);
  const proxyLabel = createLabel();
  const reactorLabel = createLabel();
  const webhookLabel = createLabel();
  const byName = new Map<CounterName, Counter>();
  for (const [name, help] of Object.entries(counters)) {
    byName.set(
      name as CounterName,
      new Counter({ name: `strongroom_${name}_total`, help, registers }),
    );
  }
  return {
    count: (name, times) => byName.get(name)?.inc(times),
    request: ({ method, route, status, seconds }) =>
      durations.observe({ method, route, status }, seconds),
    proxyCall: ({ proxy, status, seconds }) =>
      calls.observe({ proxy: proxyLabel(proxy), status: classOf(status) }, seconds),
    delivery: ({ webhook, outcome }) => deliveries.inc({ webhook: webhookLabel(webhook), outcome }),
    reactorCall: ({ reactor, outcome, seconds }) =>
      runs.observe({ reactor: reactorLabel(reactor), outcome }, seconds),
    alert: (kind) => alerts.inc({ kind }),
    group: groupObserver(registers),
    watchStore: (state) => watchStore(registers, state),
    counts: () => registry.getMetricsAsJSON(),
  };
}

/** Limits memory: a tenant can create, call, and delete resources without end, and each has a new id. */
const labelsMax = 2_000;

/** The label itself, or `other` after the maximum number of labels. */
function createLabel(): (label: string) => string {
  const known = new Set<string>();
  return (label) => {
    if (known.size < labelsMax) known.add(label);
    return known.has(label) ? label : 'other';
  };
}

/** Such as `2xx`; `none` if the host did not respond. */
function classOf(status: number | undefined): string {
  return status === undefined ? 'none' : `${Math.floor(status / 100)}xx`;
}

function groupObserver(registers: Registry[]): ThreadMetrics['group'] {
  const changes = new Counter({
    name: 'strongroom_commits_total',
    help: 'Changes that were handed to the engine, by what came of them',
    labelNames: ['outcome'],
    registers,
  });
  const sizes = new Histogram({
    name: 'strongroom_commit_group_changes',
    help: 'Changes that were committed together',
    buckets: groupBuckets,
    registers,
  });
  const times = { buckets: durationBuckets, registers };
  const waits = new Histogram({
    name: 'strongroom_commit_wait_seconds',
    help: 'How long the first change of a group waited for its commit to begin',
    ...times,
  });
  const commits = new Histogram({
    name: 'strongroom_commit_duration_seconds',
    help: 'How long the commit of a group took',
    ...times,
  });
  return ({ changes: all, conflicts, failures, waitedMs, tookMs }) => {
    sizes.observe(all);
    waits.observe(waitedMs / second);
    commits.observe(tookMs / second);
    const committed = all - conflicts - failures;
    if (committed > 0) changes.inc({ outcome: 'committed' }, committed);
    if (conflicts > 0) changes.inc({ outcome: 'conflict' }, conflicts);
    if (failures > 0) changes.inc({ outcome: 'failed' }, failures);
  };
}

function watchStore(registers: Registry[], state: () => StoreState): void {
  const gauge = (name: string, help: string, read: (state: StoreState) => number) =>
    new Gauge({
      name: `strongroom_${name}`,
      help,
      registers,
      collect() {
        this.set(read(state()));
      },
    });
  gauge('queue_changes', 'Changes that wait for their commit', ({ backlog }) => backlog.changes);
  new Gauge({
    name: 'strongroom_queue_oldest_seconds',
    help: 'How long the oldest change has waited for its commit',
    aggregator: 'max',
    registers,
    collect() {
      this.set(state().backlog.oldestMs / second);
    },
  });
  if (state().pool === undefined) return;
  gauge('pool_busy', 'Connections of the pool in use', ({ pool }) => pool?.busy ?? 0);
  gauge('pool_idle', 'Connections of the pool at rest', ({ pool }) => pool?.idle ?? 0);
  gauge('pool_waiting', 'Queries that wait for a connection', ({ pool }) => pool?.waiting ?? 0);
}

/**
 * Prometheus treats a decreasing counter as a restart, so the counters of ended threads stay in the sum. Their gauges
 * do not.
 */
export async function addCounts(all: readonly Counts[]): Promise<Counts> {
  const counted = await sumOf(all).getMetricsAsJSON();
  // The type declares an enumeration, but the value is a string.
  return counted.filter(({ type }) => String(type) !== 'gauge');
}

export function sumOf(all: readonly Counts[]): Registry {
  return AggregatorRegistry.aggregate([...all]);
}

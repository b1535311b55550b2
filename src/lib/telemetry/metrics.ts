/** What is counted for the operator, in the format of Prometheus. Labels are ours, never a caller's. */
import {
  AggregatorRegistry,
  Counter,
  collectDefaultMetrics,
  Histogram,
  type MetricObjectWithValues,
  type MetricValue,
  Registry,
} from 'prom-client';

/** Things that went wrong without failing a request: one row each. */
const counters = {
  mask_failures: 'Stored masks that could not be evaluated, so that data was left out',
  log_export_failures: 'Log entries that could not be written to the export',
  bank_provider_failures: 'Bank verifications without a status because the provider failed',
  checkpoint_sink_failures:
    'Attempts to push a log checkpoint that failed, or found the queue full',
  integrity_failures: 'Refusals because of stored rows that are not as the vault wrote them',
  job_failures: 'Runs of background jobs that failed and will be tried again',
  thread_restarts: 'Answering threads that ended unasked and were replaced',
} as const;

export type CounterName = keyof typeof counters;

export interface RequestFacts {
  readonly method: string;
  /** The pattern, such as `/tokens/:id`; `none` where no route matched. */
  readonly route: string;
  readonly status: number;
  readonly seconds: number;
}

export interface ProxyCallFacts {
  /** Its id; `ephemeral` for calls that name their destination themselves. */
  readonly proxy: string;
  /** Of the destination; `undefined` where it did not respond. */
  readonly status: number | undefined;
  readonly seconds: number;
}

export interface Metrics {
  count(name: CounterName): void;
  request(facts: RequestFacts): void;
  proxyCall(facts: ProxyCallFacts): void;
  /** The exposition text, and the media type it is to be sent under. */
  expose(): Promise<{ readonly text: string; readonly mediaType: string }>;
}

/** All that was counted, as data that can cross to another thread. */
export type Counts = readonly MetricObjectWithValues<MetricValue<string>>[];

/** Counts of one thread. */
export interface ThreadMetrics extends Pick<Metrics, 'count' | 'request' | 'proxyCall'> {
  counts(): Promise<Counts>;
}

/** Counts of a process. */
export interface ProcessMetrics extends Metrics {
  /** From now on exposes the sum of what itself and others count. */
  add(others: () => Promise<readonly Counts[]>): void;
}

/** Bounds in seconds for other hosts, up to the longest timeout of a proxy. */
const callBuckets = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 60];

/** Bounds in seconds, from a read out of memory to a client that gives up. */
const durationBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

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
  const byName = new Map<CounterName, Counter>();
  for (const [name, help] of Object.entries(counters)) {
    byName.set(
      name as CounterName,
      new Counter({ name: `strongroom_${name}_total`, help, registers }),
    );
  }
  return {
    count: (name) => byName.get(name)?.inc(),
    request: ({ method, route, status, seconds }) =>
      durations.observe({ method, route, status }, seconds),
    proxyCall: ({ proxy, status, seconds }) =>
      calls.observe({ proxy, status: classOf(status) }, seconds),
    counts: () => registry.getMetricsAsJSON(),
  };
}

/** Such as `2xx`; `none` where nobody responded. */
function classOf(status: number | undefined): string {
  return status === undefined ? 'none' : `${Math.floor(status / 100)}xx`;
}

export function createMetrics(): ProcessMetrics {
  const ofProcess = new Registry();
  collectDefaultMetrics({ register: ofProcess });
  const own = createThreadMetrics();
  let others = async (): Promise<readonly Counts[]> => [];
  return {
    ...own,
    add: (more) => {
      others = more;
    },
    expose: async () => {
      const counted = sumOf([await own.counts(), ...(await others())]);
      const texts = [await ofProcess.metrics(), await counted.metrics()];
      return { text: texts.join(''), mediaType: ofProcess.contentType };
    },
  };
}

/** Prometheus takes a count that has become smaller for a restart, so what threads that ended counted stays in it. */
export async function addCounts(all: readonly Counts[]): Promise<Counts> {
  return sumOf(all).getMetricsAsJSON();
}

function sumOf(all: readonly Counts[]): Registry {
  return AggregatorRegistry.aggregate([...all]);
}

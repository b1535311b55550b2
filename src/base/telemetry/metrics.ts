/** The operator's metrics in the Prometheus format: the sum of all threads, and the process. */

import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { second } from '../clock.ts';
import { version } from '../installation/manifest.ts';
import { type Counts, createThreadMetrics, sumOf, type ThreadMetrics } from './thread-metrics.ts';

export type { Counts } from './thread-metrics.ts';

/** Gauges with one value for the process: one row each. */
const gauges = {
  checkpoint_age_seconds:
    'Time since a run ended that signed a checkpoint of every log that had grown',
  expiry_lag_seconds: 'Time since a run ended that removed all that had expired, of the latest job',
  log_export_waiting_characters: 'Log entries that wait to be written to the export',
  log_export_lag_seconds:
    'Age of the oldest log entry that the collector has not confirmed, 0 when none waits',
  checkpoint_sink_waiting: 'Checkpoints that wait to be pushed',
  webhook_deliveries_waiting:
    'Events that wait to be delivered to a webhook, in the whole database',
  webhook_deliveries_oldest_seconds: 'How long the oldest of them has waited',
  disk_free_bytes: 'Room for the data directory, as far as the process may use it',
  disk_free_min_bytes:
    'Room below which requests that store more are refused, of the embedded database',
  disk_size_bytes: 'Size of the file system of the data directory',
  certificate_end_timestamp_seconds: 'When the TLS certificate ends, as a Unix time',
} as const;

export type GaugeName = keyof typeof gauges;

/** Gauges with several values, labeled by the id of a webhook or the name of a host. */
const labelledGauges = {
  webhook_waiting: {
    label: 'webhook',
    help: 'Deliveries that wait, by webhook, in the whole database',
  },
  webhook_oldest_seconds: {
    label: 'webhook',
    help: 'How long the oldest delivery of the webhook has waited',
  },
  database_host_up: {
    label: 'host',
    help: 'Whether a session with the database server can be opened: 1 or 0',
  },
  database_host_writable: {
    label: 'host',
    help: 'Whether the database server accepts writes: 1, or 0 for a standby and one that is down',
  },
} as const;

export type LabelledGaugeName = keyof typeof labelledGauges;

export interface Exposition {
  readonly text: string;
  /** The content type of the exposition. */
  readonly mediaType: string;
}

export interface Metrics
  extends Pick<
    ThreadMetrics,
    'alert' | 'count' | 'request' | 'proxyCall' | 'reactorCall' | 'delivery'
  > {
  expose(): Promise<Exposition>;
}

/** The metrics of a process. */
export interface ProcessMetrics extends Metrics, ThreadMetrics {
  /** Adds the counts of other threads to each later exposition. */
  add(more: () => Promise<readonly Counts[]>): void;
  /** Exposes the gauge whenever `read` returns a number. Each exposition calls `read`. */
  watch(name: GaugeName, read: () => number | undefined | Promise<number | undefined>): void;
  /** The same for a labeled gauge: exposes only the labels that `read` returns. */
  watchEach(
    name: LabelledGaugeName,
    read: () => Promise<readonly (readonly [label: string, value: number])[]>,
  ): void;
  /** @param at in milliseconds since 1970. */
  jobSucceeded(job: string, at: number): void;
}

export function createMetrics(): ProcessMetrics {
  const ofProcess = new Registry();
  const registers = [ofProcess];
  collectDefaultMetrics({ register: ofProcess });
  new Gauge({
    name: 'strongroom_build_info',
    help: 'Always 1; the labels are the version of the vault and of Node.js',
    labelNames: ['version', 'node'],
    registers,
  }).set({ version, node: process.versions.node }, 1);
  const own = createThreadMetrics();
  const successes = new Gauge({
    name: 'strongroom_job_last_success_timestamp_seconds',
    help: 'When a background job last ended without a failure, as a Unix time',
    labelNames: ['name'],
    registers,
  });
  const others: (() => Promise<readonly Counts[]>)[] = [];
  return {
    ...own,
    add: (more) => {
      others.push(more);
    },
    watch: (name, read) => {
      new Gauge({
        name: `strongroom_${name}`,
        help: gauges[name],
        registers,
        async collect() {
          const value = await read();
          if (value === undefined) this.remove();
          else this.set(value);
        },
      });
    },
    watchEach: (name, read) => {
      const { label, help } = labelledGauges[name];
      new Gauge({
        name: `strongroom_${name}`,
        help,
        labelNames: [label],
        registers,
        async collect() {
          const values = await read();
          this.reset();
          for (const [of, value] of values) this.set({ [label]: of }, value);
        },
      });
    },
    jobSucceeded: (job, at) => successes.set({ name: job }, at / second),
    expose: async () => {
      const added = await Promise.all(others.map((more) => more()));
      const counted = sumOf([await own.counts(), ...added.flat()]);
      const texts = [await ofProcess.metrics(), await counted.metrics()];
      return { text: texts.join(''), mediaType: ofProcess.contentType };
    },
  };
}

/** Checkpoints are pushed as they are signed, out of reach of an attacker with write access to the database. */
import { type FileHandle, open } from 'node:fs/promises';
import { setTimeout as timeout } from 'node:timers/promises';
import { type Clock, minute, second } from '../base/clock.ts';
import { invalid } from '../base/errors.ts';
import { createGrowingPause } from '../base/pauses.ts';
import type { Log } from '../base/telemetry/log.ts';
import type { Metrics } from '../base/telemetry/metrics.ts';
import { createRareWarning } from '../base/telemetry/rare-warning.ts';
import { type AllowList, hostAndPort } from '../outbound/allow-list.ts';
import type { Outbound } from '../outbound/call.ts';
import type { Change } from '../store/change.ts';
import type { Row } from '../store/tables.ts';
import { viewCheckpoint } from './checkpoints.ts';
import { signersUpTo } from './statements.ts';

/** The operator's destination: a file, or an address that takes checkpoints by POST. */
export type SinkPlace = { readonly file: string } | { readonly url: URL };

/** Takes the JSON of one checkpoint; rejects when it could not be delivered. */
export type Deliver = (checkpoint: string) => Promise<void>;

export interface CheckpointSink {
  /** Takes the checkpoints of a change that is durable. Returns at once, whatever becomes of them. */
  readonly take: (change: Pick<Change, 'insert'>) => void;
  /** Checkpoints that wait to be pushed. */
  readonly waiting: () => number;
  /** Tries what waits once more and gives up after a little while; it stays in the database. */
  close(): Promise<void>;
}

export interface CheckpointSinkOptions {
  readonly deliver: Deliver;
  /** So many deliveries failed, and will be tried again unless the queue was full. */
  readonly onFailure: (count: number) => void;
  /** Resolves after that time, and at once when the signal is aborted. */
  readonly pause: (ms: number, signal?: AbortSignal) => Promise<unknown>;
}

/** Waiting for a sink: those of ten thousand tenants, twice. What comes on top is not pushed. */
export const checkpointsQueuedMax = 20_000;
/** Of their statements together, which grow with the streams of a log. */
export const queuedCharactersMax = 16 * 1024 * 1024;
const failurePauses = { firstMs: second, maxMs: minute };
const closeMsMax = 5 * second;
const callTimeoutMs = 10 * second;
const responseBytesMax = 65_536;

/** @throws VaultError `validation_failed` for an address that must not be called. */
export function parseSink(text: string, allow: AllowList): SinkPlace {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return { file: text };
  const url = URL.parse(text);
  const isHttp = url && /^https?:$/.test(url.protocol);
  const callable = isHttp && (url.protocol === 'https:' || allow.has(hostAndPort(url)));
  if (callable && url.username === '' && url.password === '') return { url };
  throw invalid(
    'sink',
    'must be a path, or an https URL without a user name; http is for hosts in STRONGROOM_OUTBOUND_ALLOW',
  );
}

export interface SinkTools {
  readonly outbound: Outbound;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly clock: Clock;
}

/** The sink at a destination. It counts its failures and warns about them once a minute. */
export function openCheckpointSink(
  place: SinkPlace,
  { outbound, metrics, log, clock }: SinkTools,
): CheckpointSink {
  const message = 'log checkpoints were not pushed; they are in the database';
  const warn = createRareWarning(message, { log, clock });
  return createCheckpointSink({
    deliver: 'file' in place ? toFile(place.file) : toUrl(place.url, outbound),
    onFailure: (count) => {
      for (let failed = 0; failed < count; failed++) metrics.count('checkpoint_sink_failures');
      warn(count);
    },
    // Ends early, with an error, when the vault stops.
    pause: (ms, signal) =>
      timeout(ms, undefined, { ref: false, ...(signal && { signal }) }).catch(() => undefined),
  });
}

export function createCheckpointSink(options: CheckpointSinkOptions): CheckpointSink {
  const { deliver, onFailure, pause } = options;
  const queue: Row<'checkpoints'>[] = [];
  let characters = 0;
  const closing = new AbortController();
  let running: Promise<void> | undefined;

  /** In their order, one at a time. */
  async function run(): Promise<void> {
    const failurePause = createGrowingPause(failurePauses);
    for (let row = queue[0]; row !== undefined; row = queue[0]) {
      const isLastAttempt = closing.signal.aborted;
      try {
        await deliver(JSON.stringify(viewCheckpoint(row, signersUpTo(row))));
        queue.shift();
        characters -= row.statement.length;
        failurePause.reset();
      } catch {
        onFailure(1);
        if (isLastAttempt) break;
        await pause(failurePause.next(), closing.signal);
      }
    }
    running = undefined;
  }

  return {
    take: ({ insert }) => {
      for (const row of insert?.checkpoints ?? []) {
        if (queue.length < checkpointsQueuedMax && characters < queuedCharactersMax) {
          queue.push(row);
          characters += row.statement.length;
        } else {
          onFailure(1);
        }
      }
      if (queue.length > 0) running ??= run();
    },
    waiting: () => queue.length,
    close: async () => {
      closing.abort();
      await Promise.race([running, pause(closeMsMax)]);
    },
  };
}

/** Appends a line to the file, which may be moved away at any moment. It is durable once this resolves. */
function toFile(file: string): Deliver {
  return async (checkpoint) => {
    const handle = await open(file, 'a+', 0o600);
    try {
      const status = await handle.stat();
      // A full disk may have cut the line before short. It must not spoil this one.
      const broken = status.isFile() && !(await endsWithNewline(handle, status.size));
      await handle.appendFile(`${broken ? '\n' : ''}${checkpoint}\n`);
      if (status.isFile()) await handle.datasync();
    } finally {
      await handle.close();
    }
  };
}

async function endsWithNewline(handle: FileHandle, size: number): Promise<boolean> {
  if (size === 0) return true;
  const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer.toString() === '\n';
}

function toUrl(url: URL, outbound: Outbound): Deliver {
  return async (checkpoint) => {
    const { status } = await outbound({
      method: 'POST',
      url,
      headers: { 'content-type': 'application/json' },
      body: checkpoint,
      timeoutMs: callTimeoutMs,
      responseBytesMax: responseBytesMax,
      redirectsMax: 0,
    });
    if (status < 200 || status > 299) throw new Error('the sink did not accept the checkpoint');
  };
}

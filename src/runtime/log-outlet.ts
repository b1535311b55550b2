/** Where the log goes while it is written: lines to a file or standard output, or pushed to a collector. */
import { setTimeout as pause } from 'node:timers/promises';
import { createLogExport, toFile, toStandardOutput } from '../audit/export.ts';
import { httpsReceiver } from '../audit/push/https-receiver.ts';
import type { LogExportPlace } from '../audit/push/place.ts';
import { type Receiver, startLogPush } from '../audit/push/push.ts';
import { syslogReceiver } from '../audit/push/syslog-receiver.ts';
import { type Instant, second } from '../base/clock.ts';
import { reasonOf } from '../base/errors.ts';
import { newUuid } from '../base/ids.ts';
import type { Log } from '../base/telemetry/log.ts';
import type { ProcessMetrics } from '../base/telemetry/metrics.ts';
import { createRareWarning } from '../base/telemetry/rare-warning.ts';
import { onlyHost } from '../outbound/allow-list.ts';
import { createOutbound } from '../outbound/call.ts';
import { createForward } from '../outbound/forward.ts';
import { createTrust } from '../outbound/trust.ts';
import { createLeases } from '../queue/leases.ts';
import type { ChainedEntry } from '../store/log-chain/entries.ts';
import type { Config } from './config/config.ts';
import type { Vault } from './open-vault.ts';

/** The part of a process that takes each commit. */
export interface LogOutlet {
  readonly take: (entries: readonly ChainedEntry[]) => void;
  /** Since when nothing was accepted; `undefined` while entries are. */
  readonly failingSince: () => Instant | undefined;
  /** While the store is open. */
  finish(): Promise<void>;
  /** When nothing commits any more. */
  close(): Promise<void>;
}

interface OutletTools extends Pick<Vault, 'clock'> {
  readonly log: Log;
  readonly metrics: ProcessMetrics;
}

type WrittenPlace = Extract<LogExportPlace, { readonly kind: 'stdout' | 'file' }>;
type PushedPlace = Exclude<LogExportPlace, WrittenPlace>;

const isPushed = (place: LogExportPlace): place is PushedPlace =>
  place.kind === 'https' || place.kind === 'syslog';

/**
 * Opened before the store, so that no commit is missed. A push begins with `open`.
 * @returns nothing where the log is not exported.
 */
export function createLogOutlet(
  config: Config,
  tools: OutletTools,
): (LogOutlet & { readonly open: (vault: Vault) => void }) | undefined {
  const { logExport: place } = config;
  if (place === undefined) return undefined;
  return isPushed(place) ? pushing(place, config, tools) : writing(place, tools);
}

function writing(place: WrittenPlace, { metrics, log, clock }: OutletTools) {
  const message = 'log entries were not exported; they are in the log itself';
  const warn = createRareWarning(message, { log, clock });
  const { take, waiting, failingSince, close } = createLogExport({
    write: place.kind === 'stdout' ? toStandardOutput : toFile(place.file),
    onLost: (count) => {
      metrics.count('log_export_failures', count);
      warn(count);
    },
    pause: unref,
    clock,
  });
  metrics.watch('log_export_waiting_characters', waiting);
  return { take, failingSince, open: () => undefined, finish: async () => undefined, close };
}

function pushing(place: PushedPlace, config: Config, { metrics, log, clock }: OutletTools) {
  const message = 'log entries were not accepted by the collector; they are sent again';
  const warn = createRareWarning(message, { log, clock });
  let push: ReturnType<typeof startLogPush> | undefined;
  metrics.watch('log_export_lag_seconds', () => push && push.lagMs() / second);
  return {
    take: (entries: readonly ChainedEntry[]) => push?.take(entries),
    failingSince: () => push?.failingSince(),
    open: (vault: Vault) => {
      const { store, random, tenants, quarantine } = vault;
      const holder = newUuid(random);
      push = startLogPush({
        ...{ store, clock, tenants },
        receiver: receiverAt(place, config, vault),
        // The embedded engine has one server.
        abandonedMs: config.databaseUrl === undefined ? 0 : abandonedMs,
        leases: createLeases({ name: 'log push', store, clock, holder, quarantine }),
        onFailure: (error) => {
          metrics.count('log_export_failures');
          log.debug('the log was not pushed', { reason: reasonOf(error) });
          warn(1);
        },
        pause: unref,
      });
    },
    finish: async () => push?.close(),
    close: async () => undefined,
  };
}

function receiverAt(
  { kind, url }: PushedPlace,
  { outbound, logExportAuthorizationFile: authorizationFile }: Config,
  { vaultKeys }: Vault,
): Receiver {
  if (kind === 'syslog') return syslogReceiver({ url, trust: createTrust(outbound) });
  // The operator named the host, so it may be on the internal network.
  const forward = createForward({ ...outbound, allow: onlyHost(url), vaultName: vaultKeys.name });
  return httpsReceiver({ url, outbound: createOutbound(forward), authorizationFile });
}

/** Every server pushes what it writes within a second, while the collector accepts it. */
const abandonedMs = 10 * second;

const unref = (ms: number, signal?: AbortSignal) =>
  pause(ms, undefined, { ref: false, ...(signal && { signal }) }).catch(() => undefined);

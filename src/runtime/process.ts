/** The parts that a process has once for all threads that serve requests: the vault, its exports, and its jobs. */

import { type ActivityCounter, createActivityCounter } from '../access/activity/counting.ts';
import { recordActivity } from '../access/activity/recording.ts';
import { createOpenEncrypted } from '../access/client-keys/open-encrypted.ts';
import {
  createFailedAuthentication,
  type OnFailedAuthentication,
} from '../access/failed-authentication.ts';
import { type AdjustableAttempts, createFailedAttempts } from '../access/failure-limit.ts';
import { type Bootstrapped, bootstrap } from '../access/tenants/bootstrap.ts';
import { isRootKeyBesideProduction } from '../access/tenants/root-key-place.ts';
import { createWatch } from '../access/watch/watch.ts';
import { tokenReaders } from '../api/token-shapes.ts';
import { type CheckpointSink, openCheckpointSink } from '../audit/checkpoint-sink.ts';
import type { LogExport } from '../audit/export.ts';
import { createPageEnds, type PageEnds } from '../audit/list.ts';
import { createRefusals } from '../audit/refusals.ts';
import { minute, second, systemClock } from '../base/clock.ts';
import { isIntegrityError, reasonOf } from '../base/errors.ts';
import type { TenantId } from '../base/ids.ts';
import { diskSpaceOf } from '../base/telemetry/disk.ts';
import { createLog, type Log } from '../base/telemetry/log.ts';
import { createMetrics, type ProcessMetrics } from '../base/telemetry/metrics.ts';
import type { HostHealth } from '../base/telemetry/store-work.ts';
import { endOfCertificate } from '../keys/tls-pair.ts';
import { onlyHost } from '../outbound/allow-list.ts';
import { createOutbound } from '../outbound/call.ts';
import { createForward } from '../outbound/forward.ts';
import { createStoredBytes } from '../reactors/calls/stored-bytes.ts';
import { createAdmitLog } from '../reactors/calls/stored-logs.ts';
import { createWaitingRuns, type WaitingRuns } from '../reactors/calls/waiting-runs.ts';
import {
  findCodeIsolation,
  memoryOfVault,
  openCode,
  sayCodeIsolation,
} from '../reactors/code/engine.ts';
import type { Isolation } from '../reactors/sandbox/isolation.ts';
import type { findIsolation } from '../reactors/sandbox/probe.ts';
import {
  createBudgetMemory,
  type ProcessBudget,
  processBudget,
} from '../reactors/sandbox/process-budget.ts';
import { alertingQuarantine } from '../rules/quarantine.ts';
import { freeBytesFloor } from '../store/sqlite/free-space.ts';
import type { Store } from '../store/store.ts';
import { createBacklog, type WaitingDeliveries } from '../webhooks/deliveries/backlog.ts';
import type { StoreWith } from './commit-steps.ts';
import type { Config, Reloadable } from './config/config.ts';
import { endingUnnamedRoles } from './jobs/end-unnamed-roles.ts';
import { watchJobs } from './jobs/job-times.ts';
import { jobsOf } from './jobs/jobs.ts';
import { noticeStops } from './jobs/notice-stops.ts';
import { type JobPause, type RunningJobs, runOnce, startJobs } from './jobs/runner.ts';
import { lastBackupAt } from './last-backup.ts';
import { createLogOutlet } from './log-outlet.ts';
import { openVault, type Vault, type VaultOptions } from './open-vault.ts';

/**
 * Jobs commit through its store, and so do requests if there is only one thread: it notifies the checkpoint sink and
 * counts repeated refusals. Threads have their own stores and send both here.
 */
export interface Process extends Vault {
  readonly log: Log;
  readonly metrics: ProcessMetrics;
  readonly shared: Shared;
  /** How code of tenants is kept apart, for all threads; `undefined` where it is not run. */
  readonly isolation: Isolation | undefined;
  /** This thread's part of the budget of processes with code. */
  readonly processes: ProcessBudget;
  /** Where all threads count them; see `reactors/sandbox/process-budget.ts`. */
  readonly budgetMemory: SharedArrayBuffer;
  /** What callers did, until it is recorded. */
  readonly activity: ActivityCounter;
  /** Asynchronous calls of reactors; `undefined` where code is switched off. */
  readonly reactorRuns: WaitingRuns | undefined;
  /** The tenant and key that the first start made in an empty store. `undefined` on every later start. */
  readonly bootstrapped: Bootstrapped | undefined;
  /** Uses these settings from now on, as far as they are not a request worker's. */
  apply(settings: Reloadable): Promise<void>;
  /** @param pause passes the time between two runs of a job. */
  startJobs(pause: JobPause | undefined): RunningJobs;
  /** For when nothing commits any more: counted refusals are logged, exports finished, the store closed. */
  close(): Promise<void>;
}

/** Counters and caches for all requests together, on any thread. */
export interface Shared {
  readonly attempts: AdjustableAttempts;
  readonly onFailedAuthentication: OnFailedAuthentication;
  readonly pageEnds: PageEnds;
  /** Takes what another thread committed, as if this one had: entries on PostgreSQL, checkpoints on both. */
  readonly takeEntries: LogExport['take'] | undefined;
  readonly takeCheckpoints: CheckpointSink['take'] | undefined;
}

export interface ProcessOptions extends Pick<VaultOptions, 'clock' | 'openStore' | 'sharedKeys'> {
  readonly log?: Log;
  /** Probes how code can be isolated on this machine. */
  readonly findIsolation?: typeof findIsolation;
}

interface Telemetry {
  readonly log: Log;
  readonly metrics: ProcessMetrics;
}

export async function openProcess(config: Config, options: ProcessOptions = {}): Promise<Process> {
  const ownLog = createLog(config.logLevel);
  const { clock = systemClock, log = ownLog } = options;
  const telemetry = { log, metrics: createMetrics() };
  const logOutlet = createLogOutlet(config, { ...telemetry, clock });
  const { metrics } = telemetry;
  const onCommitted = logOutlet?.take;
  // Most of both is waiting for other processes.
  const isolating = findCodeIsolation(config.reactors, options.findIsolation);
  isolating.catch(() => undefined);
  const quarantine = alertingQuarantine({ ...telemetry, clock });
  const opened = await openVault(config, {
    ...options,
    quarantine,
    onCommitted,
    onGroup: metrics.group,
  });
  if (opened.rootKeyProof === 'altered') alertOfAlteredCheck(telemetry);
  const sink = openSink(config, { ...opened, ...telemetry });
  const refusals = createRefusals({ store: opened.store, clock, log });
  const activity = createActivityCounter(clock);
  const watchUse = createWatch({ ...opened, metrics, log, activity });
  logOutlet?.open(opened);
  let certificate = config.tls?.cert;
  watchPlaces(metrics, config, () => certificate);
  metrics.watchStore(opened.store.state);
  metrics.watch('checkpoint_sink_waiting', () => sink?.waiting());
  watchDeliveries(metrics, { store: opened.store, clock });
  watchHosts(metrics, opened.store);
  let reactors: ReactorRuns | undefined;
  const close = async () => {
    await reactors?.close();
    await refusals.close();
    await recordActivity({ ...opened, activity }).catch(() => undefined);
    await sink?.close();
    await logOutlet?.finish();
    await opened.close();
    await logOutlet?.close();
  };
  const storeWith: StoreWith = (steps) =>
    opened.storeWith({ countRefusals: refusals.step, watchUse, ...steps });
  const vault = { ...opened, store: storeWith({}), storeWith, activity, close };
  try {
    const isolation = await isolating;
    sayCodeIsolation(config.reactors, isolation, log);
    const budgetMemory = createBudgetMemory(memoryOfVault());
    const processes = processBudget(budgetMemory, 0);
    reactors = openReactorRuns(config, { ...vault, ...telemetry, isolation, processes });
    const bootstrapped = await bootstrap(vault, config.bootstrap);
    await warnOfExposedRootKey(vault, config, log);
    const onCorrected = (tenant: TenantId) => alertOfCorrection(telemetry, tenant);
    const tools = { ...vault, onCorrected };
    let { roleRules } = config;
    const endingRoles = endingUnnamedRoles(vault, () => roleRules);
    const jobs = [
      ...jobsOf(tools, sink && minute, reactors?.runs, config),
      ...(config.console ? [endingRoles] : []),
      noticeStops(
        { ...vault, metrics, log },
        {
          exportFailingSince: logOutlet?.failingSince,
          lastBackupAt: () => lastBackupAt(config.dataDir),
        },
      ),
    ];
    const onFailure = (error: unknown) => {
      telemetry.metrics.count('job_failures');
      const altered = isIntegrityError(error);
      if (altered) telemetry.metrics.count('integrity_failures');
    };
    const attempts = createFailedAttempts(config.rateLimits.failedAuthentication, clock);
    return {
      ...vault,
      ...telemetry,
      shared: {
        attempts,
        onFailedAuthentication: createFailedAuthentication({ ...vault, log }),
        pageEnds: createPageEnds(clock),
        takeEntries: logOutlet?.take,
        takeCheckpoints: sink?.take,
      },
      isolation,
      processes,
      budgetMemory,
      reactorRuns: reactors?.runs,
      bootstrapped,
      apply: async ({ logLevel, rateLimits, roleRules: rules, tls }) => {
        ownLog.setLevel(logLevel);
        attempts.setLimit(rateLimits.failedAuthentication);
        certificate = tls?.cert;
        roleRules = rules;
        if (config.console) await runOnce(endingRoles, { log, onFailure });
      },
      startJobs: (pause) =>
        startJobs(jobs, log, { pause, onFailure, onSuccess: watchJobs(jobs, { metrics, clock }) }),
    };
  } catch (error) {
    await close();
    throw error;
  }
}

interface ReactorRuns {
  readonly runs: WaitingRuns;
  close(): Promise<void>;
}

/** Code for which no caller waits runs in separate processes, so that it takes none from requests. */
function openReactorRuns(
  { reactors, outbound }: Config,
  tools: Vault & Telemetry & Pick<Process, 'isolation' | 'processes'>,
): ReactorRuns | undefined {
  const { metrics, log, clock, isolation, processes } = tools;
  if (isolation === undefined) return undefined;
  const code = openCode({ ...reactors, isolation, log, processes, isBackground: true });
  const runs = createWaitingRuns({
    ...tools,
    code,
    forward: createForward({ ...outbound, vaultName: tools.vaultKeys.name }),
    admitLog: createAdmitLog(clock),
    storedBytes: createStoredBytes(tools),
    openEncrypted: createOpenEncrypted(tools),
    ...tokenReaders,
    onMaskFailure: () => metrics.count('mask_failures'),
    onFailure: (error) => {
      metrics.count('job_failures');
      const altered = isIntegrityError(error);
      if (altered) metrics.count('integrity_failures');
      log.error('an asynchronous call of a reactor met a failure', {
        reason: reasonOf(error),
      });
    },
  });
  const close = async () => {
    const stopped = runs.stop();
    await code.sandbox?.close();
    await stopped;
  };
  return { runs, close };
}

/** Metrics of pools that fill up and of certificates that expire. */
function watchPlaces(
  metrics: ProcessMetrics,
  { dataDir, databaseUrl, freeBytesMin }: Config,
  certificate: () => string | undefined,
): void {
  metrics.watch('disk_free_bytes', async () => (await diskSpaceOf(dataDir))?.freeBytes);
  metrics.watch('disk_size_bytes', async () => (await diskSpaceOf(dataDir))?.sizeBytes);
  metrics.watch('disk_free_min_bytes', async () => {
    const space = databaseUrl === undefined ? await diskSpaceOf(dataDir) : undefined;
    return space && freeBytesFloor(space, freeBytesMin);
  });
  metrics.watch('certificate_end_timestamp_seconds', () => {
    const pem = certificate();
    return pem === undefined ? undefined : endOfCertificate(pem) / second;
  });
}

/** Reads both together from the database, which all servers share. */
function watchDeliveries(
  metrics: ProcessMetrics,
  { store, clock }: Pick<Vault, 'store' | 'clock'>,
): void {
  const backlog = createBacklog({ store, clock });
  const byWebhook = async (of: (waiting: WaitingDeliveries) => number) =>
    [...((await backlog())?.byWebhook ?? [])].map(
      ([webhook, waiting]) => [webhook, of(waiting)] as const,
    );
  metrics.watch('webhook_deliveries_waiting', async () => (await backlog())?.count);
  metrics.watch('webhook_deliveries_oldest_seconds', async () => (await backlog())?.oldestSeconds);
  metrics.watchEach('webhook_waiting', () => byWebhook(({ count }) => count));
  metrics.watchEach('webhook_oldest_seconds', () => byWebhook((one) => one.oldestSeconds));
}

/** The connections to PostgreSQL. The embedded engine has none. */
function watchHosts(metrics: ProcessMetrics, { hosts }: Pick<Store, 'hosts'>): void {
  if (hosts === undefined) return;
  const byHost = async (is: (host: HostHealth) => boolean) =>
    (await hosts()).map((one) => [one.host, Number(is(one))] as const);
  metrics.watchEach('database_host_up', () => byHost(({ isUp }) => isUp));
  metrics.watchEach('database_host_writable', () => byHost(({ isWritable }) => isWritable));
}

/** An attacker who can alter one row of the database cannot prevent the start. */
function alertOfAlteredCheck({ log, metrics }: Telemetry): void {
  metrics.count('integrity_failures');
  log.error(
    'the row that proves the root key was altered outside the vault; the keys of a tenant prove it instead. ' +
      "The vault's own key is missing: restore the rows root.* of vault_keys from a backup",
  );
}

/** The audit log of the tenant names the applications. */
function alertOfCorrection({ log, metrics }: Telemetry, tenant_id: TenantId): void {
  metrics.count('stored_bytes_corrections');
  log.warn(
    'a counter of stored bytes was altered outside the vault, so that storage quotas did not hold; it was corrected',
    { tenant_id },
  );
}

async function warnOfExposedRootKey({ store }: Vault, config: Config, log: Log): Promise<void> {
  if (!(await isRootKeyBesideProduction(store, config))) return;
  log.warn(
    'the root key is in the data directory, next to the database of a production tenant: anyone who ' +
      'copies the directory can read all values. Set STRONGROOM_ROOT_KEY_FILE or STRONGROOM_ROOT_KEY',
  );
}

/** Takes the checkpoints of every commit, also that of the first start. */
function openSink(config: Config, vault: Vault & Telemetry): CheckpointSink | undefined {
  const { checkpointSink } = config;
  if (checkpointSink === undefined) return undefined;
  const vaultName = vault.vaultKeys.name;
  const own = 'url' in checkpointSink && { allow: onlyHost(checkpointSink.url) };
  const outbound = createOutbound(createForward({ ...config.outbound, ...own, vaultName }));
  const sink = openCheckpointSink(checkpointSink, { ...vault, outbound });
  vault.store.subscribe(sink.take);
  return sink;
}

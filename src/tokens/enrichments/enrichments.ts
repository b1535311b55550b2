/** What enrichments use: the operator's files and service, opened once at the start. */
import type { Clock } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import type { Log } from '../../base/telemetry/log.ts';
import type { Metrics } from '../../base/telemetry/metrics.ts';
import type { Outbound } from '../../outbound/call.ts';
import type { Caller } from '../../rules/caller.ts';
import { createBankHost } from './bank-host.ts';
import type { BankHostConfig } from './bank-host-config.ts';
import { createBankVerification, type VerifyAccount } from './bank-verification.ts';
import { type BinTable, parseBinTable } from './bin-table.ts';
import { type OperatorFile, openOperatorFile } from './operator-file.ts';
import { parseRoutingDirectory } from './routing-directory.ts';

export interface EnrichmentConfig {
  /** Paths. */
  readonly routingDirectory: string | undefined;
  readonly binTable: string | undefined;
  readonly bankHost: BankHostConfig | undefined;
  /** True if an unavailable service is a 503 and not an inconclusive status. */
  readonly strict: boolean;
  readonly cacheMs: number;
}

export interface EnrichmentTools {
  readonly clock: Clock;
  readonly random: Random;
  readonly outbound: Outbound;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly pause: (milliseconds: number) => Promise<unknown>;
}

export interface Enrichments {
  readonly verifyAccount: VerifyAccount;
  readonly strict: boolean;
  readonly onNoResponse: (caller: Caller, reason: string) => void;
  readonly binTable: (() => Promise<BinTable>) | undefined;
}

/** @throws OperatorFileError when a configured file cannot be used. */
export async function openEnrichments(
  tools: EnrichmentTools,
  config: EnrichmentConfig,
): Promise<Enrichments> {
  const { clock, log, metrics } = tools;
  const { bankHost, cacheMs, strict } = config;
  const onRefused = (reason: string) =>
    log.warn('a changed file cannot be used; its previous contents stay in use', { reason });
  const open = async <T>(
    path: string | undefined,
    file: Pick<OperatorFile<T>, 'variable' | 'parse'>,
  ) =>
    path === undefined ? undefined : await openOperatorFile({ ...file, path, clock, onRefused });
  const directory = await open(config.routingDirectory, {
    variable: 'STRONGROOM_ROUTING_DIRECTORY',
    parse: parseRoutingDirectory,
  });
  const binTable = await open(config.binTable, {
    variable: 'STRONGROOM_BIN_TABLE',
    parse: parseBinTable,
  });
  const service = bankHost && createBankHost(tools, bankHost);
  return {
    verifyAccount: createBankVerification({ clock, directory, service, cacheMs }),
    strict,
    onNoResponse: ({ tenant, origin }, reason) => {
      metrics.count('bank_provider_failures');
      log.warn('a bank account could not be verified', {
        tenant_id: tenant.id,
        trace_id: origin.traceId,
        reason,
      });
    },
    binTable,
  };
}

/** Every route of the service: those that ask for a key, and those that do not. */

import type { WebhookKey } from '../../crypto/webhook-signatures.ts';
import type { Random } from '../../lib/random.ts';
import type { Metrics } from '../../lib/telemetry/metrics.ts';
import type { AllowList } from '../../outbound/allow-list.ts';
import type { Forward } from '../../outbound/forward.ts';
import type { VaultNames } from '../../rules/host-names.ts';
import type { Tenants } from '../../rules/tenant.ts';
import type { OpenEncrypted } from '../../vault/client-keys/open-encrypted.ts';
import type { CodeEngine } from '../../vault/code/engine.ts';
import type { Enrichments } from '../../vault/enrichments/enrichments.ts';
import type { PageEnds } from '../../vault/logs/list.ts';
import type { ProxyFinder } from '../../vault/proxies/find.ts';
import type { StoredBytes } from '../../vault/reactor-calls/stored-bytes.ts';
import type { AdmitLog } from '../../vault/reactor-calls/stored-logs.ts';
import type { SessionListing } from '../../vault/sessions/live.ts';
import type { TokenReading } from '../../vault/tokens/read.ts';
import type { ImportTools } from '../bulk/import-stream.ts';
import type { OpenRoute, Route } from '../protocol/route.ts';
import { readTokenPatch, readTokenRequest } from '../protocol/token-request.ts';
import { accessRoutes } from './access.ts';
import { applicationKeyRoutes } from './application-keys.ts';
import { applicationRoutes } from './applications.ts';
import { clientKeyRoutes } from './client-keys.ts';
import { docsRoutes } from './docs.ts';
import { enrichmentRoutes } from './enrichments.ts';
import { healthRoutes } from './health.ts';
import { logRoutes } from './logs.ts';
import { proxyRoutes } from './proxies.ts';
import { reactorCallRoutes } from './reactor-calls.ts';
import { reactorRoutes } from './reactors.ts';
import { sessionRoutes } from './sessions.ts';
import { tenantRoutes } from './tenants.ts';
import { tokenIntentRoutes } from './token-intents.ts';
import { tokenListRoutes } from './token-lists.ts';
import { tokenStreamRoutes } from './token-streams.ts';
import { tokenizationRoutes } from './tokenization.ts';
import { tokenRoutes } from './tokens.ts';
import { webhookKeyRoutes, webhookRoutes } from './webhooks.ts';

export interface RouteTools
  extends TokenReading,
    Pick<ImportTools, 'siblings'>,
    Pick<SessionListing, 'quarantine'> {
  readonly random: Random;
  readonly tenants: Tenants;
  readonly metrics: Metrics;
  readonly showsMetrics: boolean;
  readonly enrichments: Enrichments;
  readonly pageEnds: PageEnds;
  readonly proxies: ProxyFinder;
  readonly openEncrypted: OpenEncrypted;
  readonly signingKey: () => Promise<WebhookKey>;
  readonly code: CodeEngine;
  readonly forward: Forward;
  readonly admitLog: AdmitLog;
  readonly storedBytes: StoredBytes;
  /** The vault's own, which no tenant can be given. */
  readonly names: VaultNames;
  /** The operator's own hosts, to which the vault may send. */
  readonly allowedHosts: AllowList;
  /** The service's own, for the description of the interface. */
  readonly headerPrefix: string;
  readonly version: string;
}

export interface Routes {
  readonly routes: readonly Route[];
  readonly openRoutes: readonly OpenRoute[];
}

export function routesOf(tools: RouteTools): Routes {
  const routes = [
    ...tokenRoutes(tools),
    ...tokenListRoutes(tools),
    ...tokenizationRoutes(tools),
    ...tokenStreamRoutes(tools),
    ...tokenIntentRoutes(tools),
    ...applicationRoutes(tools),
    ...applicationKeyRoutes(tools),
    ...proxyRoutes(tools),
    ...reactorRoutes(tools),
    ...reactorCallRoutes({ ...tools, readRequest: readTokenRequest, readPatch: readTokenPatch }),
    ...clientKeyRoutes(tools),
    ...webhookRoutes(tools),
    ...accessRoutes(tools),
    ...sessionRoutes(tools),
    ...tenantRoutes(tools),
    ...logRoutes(tools),
    ...enrichmentRoutes({ ...tools, ...tools.enrichments }),
  ];
  const open = [...healthRoutes(tools), ...webhookKeyRoutes(tools)];
  return {
    routes,
    openRoutes: [...open, ...docsRoutes({ ...tools, routes, openRoutes: open })],
  };
}

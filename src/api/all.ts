/** Every operation of the service: those that require a key, by resource, and those that do not. */

import type { ActivityReporting } from '../access/activity/report.ts';
import type { OpenEncrypted } from '../access/client-keys/open-encrypted.ts';
import type { VaultKeys } from '../access/keyrings/vault-keys.ts';
import type { PageEnds } from '../audit/list.ts';
import type { Random } from '../base/random.ts';
import type { ImportTools } from '../http/bulk/import-stream.ts';
import type { AllowList } from '../outbound/allow-list.ts';
import type { Forward } from '../outbound/forward.ts';
import type { ProxyFinder } from '../proxies/find.ts';
import type { ReactorCalling } from '../reactors/calls/react.ts';
import type { StoredBytes } from '../reactors/calls/stored-bytes.ts';
import type { AdmitLog } from '../reactors/calls/stored-logs.ts';
import type { CodeEngine } from '../reactors/code/engine.ts';
import type { VaultNames } from '../rules/host-names.ts';
import type { Tenants } from '../rules/tenant.ts';
import type { Enrichments } from '../tokens/enrichments/enrichments.ts';
import type { TokenReading } from '../tokens/read.ts';
import { applications } from './applications.ts';
import { approvals } from './approvals.ts';
import { clientKeys } from './client-keys.ts';
import type { OpenOperation, Resource, Section } from './declaration/operation.ts';
import { egress } from './egress.ts';
import { enrichments } from './enrichments.ts';
import { logs } from './logs.ts';
import { people } from './people.ts';
import { proxies } from './proxies.ts';
import { reactors } from './reactors.ts';
import { type ServiceTools, serviceOperations } from './service.ts';
import { sessions } from './sessions.ts';
import { tenantKeysResource } from './tenant-keys.ts';
import { tenants } from './tenants.ts';
import { tokenIntents } from './token-intents.ts';
import { tokenization } from './tokenization.ts';
import { tokens } from './tokens.ts';
import { webhooks } from './webhooks.ts';

export interface ApiTools
  extends TokenReading,
    ServiceTools,
    ImportTools,
    Pick<ReactorCalling, 'readPatch'> {
  readonly random: Random;
  readonly tenants: Tenants;
  readonly vaultKeys: VaultKeys;
  /** See `readErasure`. */
  readonly keyMaxAgeMs: number;
  readonly lastBackupAt: ActivityReporting['lastBackupAt'];
  readonly enrichments: Enrichments;
  readonly pageEnds: PageEnds;
  readonly proxies: ProxyFinder;
  readonly openEncrypted: OpenEncrypted;
  readonly code: CodeEngine;
  readonly forward: Forward;
  readonly admitLog: AdmitLog;
  readonly storedBytes: StoredBytes;
  /** The vault's own, which no tenant can be given. */
  readonly names: VaultNames;
  /** The operator's own hosts, to which the vault may send. */
  readonly allowedHosts: AllowList;
}

/** In the order of the reference. A new resource is a row here and a file in this folder. */
const resources: readonly Resource<ApiTools & Enrichments>[] = [
  tokens,
  tokenization,
  tokenIntents,
  enrichments,
  applications,
  sessions,
  people,
  proxies,
  egress,
  approvals,
  reactors,
  clientKeys,
  webhooks,
  logs,
  tenantKeysResource,
  tenants,
];

export interface Api {
  readonly sections: readonly Section[];
  /** What needs no key. */
  readonly open: readonly OpenOperation[];
}

export function createApi(tools: ApiTools): Api {
  const all = { ...tools, ...tools.enrichments };
  const sections = resources.map(({ tag, description, operations }) => ({
    tag,
    description,
    operations: operations(all),
  }));
  return { sections, open: serviceOperations(tools, sections) };
}

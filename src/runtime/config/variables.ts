/** All known variables, and the error for variables that are set but unknown. */

import { closestTo } from '../../base/similar.ts';
import type { ReadRootKeyVariable } from '../../keys/root/root-key.ts';
import { rootKeyVariables } from '../../keys/root/sources.ts';
import { ConfigError } from './problems.ts';

const prefix = 'STRONGROOM_';

/** Without their prefix. A variable can be read only if it is in this list. */
const variableNames = [
  'ACCESS_LOG',
  'BANK_PROVIDER_ANSWER',
  'BANK_PROVIDER_ATTEMPTS',
  'BANK_PROVIDER_CACHE_SECONDS',
  'BANK_PROVIDER_HEADERS',
  'BANK_PROVIDER_REQUEST',
  'BANK_PROVIDER_STRICT',
  'BANK_PROVIDER_TIMEOUT_MS',
  'BANK_PROVIDER_URL',
  'BIN_TABLE',
  'BOOTSTRAP_KEY',
  'BOOTSTRAP_KEY_FILE',
  'BOOTSTRAP_TENANT',
  'BOOTSTRAP_TENANT_TYPE',
  'CHECKPOINT_SINK',
  'CONFIG',
  'CONSOLE',
  'DATABASE_DISTRIBUTE',
  'DATABASE_TLS',
  'DATABASE_URL',
  'DATABASE_URL_FILE',
  'DATA_DIR',
  'DATA_KEY_PERIOD',
  'EGRESS_ADDRESS',
  'FREE_SPACE_MIN',
  'HEADER_PREFIXES',
  'HOST',
  // The key of commands that call a running vault, which a shell may have next to the others.
  'KEY',
  'KEY_MAX_AGE',
  'LOG_EXPORT',
  'LOG_EXPORT_AUTHORIZATION_FILE',
  'LOG_LEVEL',
  'METRICS_ADDRESS',
  'OIDC_CLIENT_ID',
  'OIDC_CLIENT_SECRET_FILE',
  'OIDC_ISSUER',
  'OIDC_NAME',
  'OIDC_ROLES',
  'OIDC_SCOPES',
  'OTLP_ENDPOINT',
  'OUTBOUND_ALLOW',
  'OUTBOUND_CA',
  'PORT',
  // Which stored key and vault commands use.
  'PROFILE',
  'PROXY_DOMAIN',
  'PUBLIC_URL',
  'RATE_LIMITS',
  'REACTORS',
  'REACTOR_ISOLATION',
  'REACTOR_MODULES',
  'ROOT_KEY',
  'ROOT_KEY_FILE',
  'ROOT_KEY_SOURCE',
  'ROUTING_DIRECTORY',
  'THREADS',
  'TLS',
  'TLS_CERT',
  'TLS_KEY',
  'TRUSTED_PROXIES',
  // The address of a running vault, for commands and clients.
  'URL',
] as const;

export type VariableName = (typeof variableNames)[number];

export type Environment = Readonly<Record<string, string | undefined>>;
/** The text of a variable; `undefined` where it is absent or empty. */
export type ReadVariable = (name: VariableName) => string | undefined;

export function readerOf(environment: Environment): ReadVariable {
  return (name) => environment[prefix + name] || undefined;
}

/** The same for the variables of sources of the root key, which these know. */
export function rootKeyReaderOf(environment: Environment): ReadRootKeyVariable {
  return (name) => environment[prefix + name] || undefined;
}

/** The variables that are not the vault's. */
export function foreignVariables(environment: Environment): Environment {
  const entries = Object.entries(environment);
  return Object.fromEntries(entries.filter(([name]) => !name.startsWith(prefix)));
}

/**
 * What Kubernetes sets in every container for a Service named `strongroom` or `strongroom-…`, unless
 * `enableServiceLinks` is false.
 */
const serviceLinks =
  /_(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)$/;

/** @throws ConfigError for each variable that is set and unknown: a misspelt limit must not be none. */
export function refuseUnknown(environment: Environment): void {
  const known = [...variableNames, ...rootKeyVariables].map((name) => prefix + name);
  const unknown = Object.keys(environment).filter(
    (name) =>
      name.startsWith(prefix) &&
      environment[name] &&
      !known.includes(name) &&
      !serviceLinks.test(name),
  );
  if (unknown.length === 0) return;
  throw new ConfigError(
    unknown.map((name) => {
      const meant = closestTo(name, known);
      return `${name} is not a variable of Strongroom${meant ? `; did you mean ${meant}?` : '.'}`;
    }),
  );
}

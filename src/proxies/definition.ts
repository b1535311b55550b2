/** The definition of a proxy: its sealed settings, and their form in requests. */

import type { ApplicationId } from '../base/ids.ts';
import type { Json } from '../base/json.ts';
import { createValidationErrors, type ValidationErrors } from '../base/validation-errors.ts';
import { readCertificate, readPrivateKey, rsaBitsMax } from '../keys/client-certificate.ts';
import { readConfiguration } from '../rules/configuration.ts';
import { readHost, type VaultNames } from '../rules/host-names.ts';
import { readLinkedApplication } from '../rules/linked-application.ts';
import { readDestination, readPaths } from './addresses.ts';
import { checkTransforms } from './transforms.ts';

/** Sealed as one value. */
export interface ProxyDefinition {
  readonly destination_url: string;
  readonly request_transforms: readonly Json[];
  readonly response_transforms: readonly Json[];
  /** The application whose rules apply to calls without a key. It may have been deleted since. */
  readonly application_id: ApplicationId | null;
  readonly configuration: Readonly<Record<string, string>>;
  readonly require_auth: boolean;
  readonly disable_detokenization: boolean;
  /** Whether calls without a key may send data that a client encrypted. */
  readonly allow_encrypted: boolean;
  /** In seconds. */
  readonly timeout: number;
  /** Paths after `/proxy`, exact or with `*`; null allows all. */
  readonly allowed_paths: readonly string[] | null;
  /** In upper case; null allows all. */
  readonly allowed_methods: readonly ProxyMethod[] | null;
  /** In PEM; either both are set or neither. */
  readonly client_certificate: string | null;
  readonly client_key: string | null;
}

export const proxyMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;
export type ProxyMethod = (typeof proxyMethods)[number];

/** A proxy as a request gives it. */
export interface ProxySettings {
  readonly name: string;
  readonly host: string | null;
  /**
   * Set for a patch that does not name the host: a proxy of an older release may have a host not given to its tenant.
   */
  readonly isHostKept?: boolean;
  readonly definition: ProxyDefinition;
}

const timeoutSecondsDefault = 25;
export const timeoutSecondsMin = 1;
export const timeoutSecondsMax = 60;

const certificateLengthMax = 32_768;
const privateKeyLengthMax = 16_384;

/** The parsed form of the wire schema; null means absent. */
export interface ProxyRequest {
  readonly name: string;
  readonly destination_url: string;
  readonly request_transform?: Json;
  readonly response_transform?: Json;
  readonly request_transforms?: readonly Json[] | null;
  readonly response_transforms?: readonly Json[] | null;
  readonly application?: { readonly id: string } | null;
  readonly configuration?: Readonly<Record<string, string | null>> | null;
  readonly require_auth?: boolean | null;
  readonly disable_detokenization?: boolean | null;
  readonly allow_encrypted?: boolean | null;
  readonly timeout?: number | null;
  readonly proxy_host?: string | null;
  readonly allowed_paths?: readonly string[] | null;
  readonly allowed_methods?: readonly string[] | null;
  readonly client_certificate?: string | null;
  readonly client_key?: string | null;
  readonly request_reactor_id?: string | null;
  readonly response_reactor_id?: string | null;
}

/**
 * @param names the vault's own names, which no proxy can have.
 * @throws VaultError `validation_failed` naming every attribute that is wrong.
 */
export function parseProxy(given: ProxyRequest, names: VaultNames): ProxySettings {
  const errors = createValidationErrors();
  refuseReactors(given, errors);
  const host = readHost(given.proxy_host ?? null, { names, errors });
  const definition = {
    destination_url: readDestination(given.destination_url, errors),
    request_transforms: readTransforms(given, 'request', errors),
    response_transforms: readTransforms(given, 'response', errors),
    application_id: readLinkedApplication(given.application ?? null, errors),
    configuration: readConfiguration(given.configuration ?? {}, errors),
    require_auth: given.require_auth ?? true,
    disable_detokenization: given.disable_detokenization ?? false,
    allow_encrypted: given.allow_encrypted ?? false,
    timeout: readTimeout(given.timeout ?? timeoutSecondsDefault, errors),
    allowed_paths: readPaths(given.allowed_paths ?? null, errors),
    allowed_methods: readMethods(given.allowed_methods ?? null, errors),
    ...readIdentity(given, errors),
  };
  errors.settle();
  return { name: given.name, host, definition };
}

/** The request that would create this proxy. */
export function requestOf({ name, host, definition }: ProxySettings): ProxyRequest {
  const { application_id, ...rest } = definition;
  const application = application_id === null ? null : { id: application_id };
  return { ...rest, name, proxy_host: host, application };
}

/** Before there were transforms, requests attached reactors by their ids. */
function refuseReactors(given: ProxyRequest, errors: ValidationErrors): void {
  for (const side of ['request', 'response'] as const) {
    const name = `${side}_reactor_id` as const;
    if ((given[name] ?? null) === null) continue;
    errors.add(name, `is removed; use ${side}_transforms instead`);
  }
}

/** Returns the list, or a list with the one transform from the older attribute. */
function readTransforms(
  given: ProxyRequest,
  side: 'request' | 'response',
  errors: ValidationErrors,
): readonly Json[] {
  const [one, path] = [given[`${side}_transform`] ?? null, `${side}_transforms`] as const;
  const list = given[`${side}_transforms`] ?? null;
  if (one === null) return checkTransforms(list ?? [], { side, errors });
  if (list !== null && JSON.stringify(list) !== JSON.stringify([one])) {
    errors.add(`${side}_transform`, `cannot be combined with ${path}`);
  }
  return checkTransforms([one], { side, errors });
}

function readTimeout(seconds: number, errors: ValidationErrors): number {
  if (seconds < timeoutSecondsMin || seconds > timeoutSecondsMax) {
    errors.add('timeout', `must be from ${timeoutSecondsMin} to ${timeoutSecondsMax} seconds`);
  }
  return seconds;
}

function readMethods(
  given: readonly string[] | null,
  errors: ValidationErrors,
): readonly ProxyMethod[] | null {
  if (given === null) return null;
  const methods = proxyMethods.filter((method) => given.includes(method));
  if (given.length === 0 || methods.length < given.length) {
    const form = `must contain one or more of ${proxyMethods.join(', ')}, each once`;
    errors.add('allowed_methods', form);
  }
  return methods;
}

/** The certificate must belong to the key. Otherwise TLS would fail on every call. */
function readIdentity(given: ProxyRequest, errors: ValidationErrors) {
  const { client_certificate = null, client_key = null } = given;
  if (client_certificate === null && client_key === null) return { client_certificate, client_key };
  const certificate =
    (client_certificate ?? '').length <= certificateLengthMax
      ? readCertificate(client_certificate ?? '')
      : undefined;
  const key =
    (client_key ?? '').length <= privateKeyLengthMax ? readPrivateKey(client_key ?? '') : undefined;
  if (certificate === undefined) {
    const form = `must be one or more certificates in PEM, at most ${certificateLengthMax} characters`;
    errors.add(
      'client_certificate',
      client_certificate === null ? requiredWith('client_key') : form,
    );
  }
  if (key === undefined) {
    const form =
      'must be a private key in PEM without a passphrase, of an elliptic curve or RSA with at most ' +
      `${rsaBitsMax} bits, at most ${privateKeyLengthMax} characters`;
    errors.add('client_key', client_key === null ? requiredWith('client_certificate') : form);
  }
  if (certificate && key && !certificate.checkPrivateKey(key)) {
    errors.add('client_key', 'must be the private key of the first certificate');
  }
  return { client_certificate, client_key };
}

const requiredWith = (other: string) => `is required with ${other}`;

/** The definition of a reactor: its sealed settings, and their form in requests. */

import type { ApplicationId } from '../base/ids.ts';
import type { Json } from '../base/json.ts';
import { createValidationErrors, type ValidationErrors } from '../base/validation-errors.ts';
import { readConfiguration } from '../rules/configuration.ts';
import { flawOfDestinations } from '../rules/destinations.ts';
import { readLinkedApplication } from '../rules/linked-application.ts';
import { type CodeRuntime, codeForm, isCode, readRuntime } from './code/code-runtime.ts';

/** Sealed as one value. */
export interface ReactorDefinition {
  readonly code: string;
  readonly configuration: Readonly<Record<string, string>>;
  /** The application whose rights `bt` in the code uses. It may have been deleted since. */
  readonly application_id: ApplicationId | null;
  readonly runtime: CodeRuntime;
  /**
   * Hosts that the code may call, in lower case, with `*` as wildcard; null allows every host that the tenant allows.
   */
  readonly allowed_hosts: readonly string[] | null;
}

/** A reactor as a request gives it. */
export interface ReactorSettings {
  readonly name: string;
  readonly definition: ReactorDefinition;
}

/** The parsed form of the wire schema; null means absent. */
export interface ReactorRequest {
  readonly name: string;
  readonly code?: string | null;
  readonly configuration?: Readonly<Record<string, string | null>> | null;
  readonly application?: { readonly id: string } | null;
  readonly runtime?: Json;
  readonly allowed_hosts?: readonly string[] | null;
  readonly formula?: Json;
}

const hostsMax = 100;

/** @throws VaultError `validation_failed` naming every attribute that is wrong. */
export function parseReactor(given: ReactorRequest): ReactorSettings {
  const errors = createValidationErrors();
  if ((given.formula ?? null) !== null) errors.add('formula', 'is removed; use code instead');
  const runtime = readRuntime(given.runtime, { errors, path: 'runtime', mayBeAsync: true });
  const code = given.code ?? '';
  if (!isCode(code)) errors.add('code', codeForm);
  const definition: ReactorDefinition = {
    code,
    configuration: readConfiguration(given.configuration ?? {}, errors),
    application_id: readLinkedApplication(given.application ?? null, errors),
    runtime,
    allowed_hosts: readHosts(given.allowed_hosts ?? null, errors),
  };
  if (runtime.image === 'node22' && definition.application_id !== null) {
    errors.add('application', 'cannot be combined with the image node22; use runtime.permissions');
  }
  errors.settle();
  return { name: given.name, definition };
}

/** In lower case. */
function readHosts(
  given: readonly string[] | null,
  errors: ValidationErrors,
): readonly string[] | null {
  if (given === null) return null;
  if (given.length > hostsMax)
    errors.add('allowed_hosts', `must contain at most ${hostsMax} hosts`);
  for (const [index, host] of given.slice(0, hostsMax).entries()) {
    if (host.includes(',') || host.trim() === '' || flawOfDestinations(host) !== undefined) {
      const form =
        'must be the name of a host, in which * stands for any characters, without a port';
      errors.add(`allowed_hosts[${index}]`, form);
    }
  }
  return given.map((host) => host.toLowerCase());
}

/** The request that would create this reactor. */
export function requestOf({ name, definition }: ReactorSettings): ReactorRequest {
  const { application_id, runtime, ...rest } = definition;
  const application = application_id === null ? null : { id: application_id };
  return { ...rest, name, runtime: shownRuntime(runtime), application };
}

/** The older image shows only the attributes that it has. */
export function shownRuntime({ image, timeout, ...newer }: CodeRuntime): Json {
  return { image, ...(timeout !== null && { timeout }), ...(image === 'node22' && newer) };
}

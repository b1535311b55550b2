/** A reactor as a request words it, parsed: what POST and PUT give, and what a patch leads to. */
import { createFindings, type Findings } from '../../lib/findings.ts';
import type { Json } from '../../lib/json.ts';
import { readConfiguration } from '../../rules/configuration.ts';
import { flawOfDestinations } from '../../rules/destinations.ts';
import { readLinkedApplication } from '../../rules/linked-application.ts';
import { codeForm, isCode, readRuntime } from '../../transforms/code-runtime.ts';
import type { ReactorDefinition, ReactorSettings } from './definition.ts';

const hostsMax = 100;

/** As the wire schema lets it through; null means absent. */
export interface ReactorRequest {
  readonly name: string;
  readonly code?: string | null;
  readonly configuration?: Readonly<Record<string, string | null>> | null;
  readonly application?: { readonly id: string } | null;
  readonly runtime?: Json;
  readonly allowed_hosts?: readonly string[] | null;
  readonly formula?: Json;
}

/** @throws VaultError `validation_failed` naming every attribute that is wrong. */
export function parseReactor(given: ReactorRequest): ReactorSettings {
  const findings = createFindings();
  if ((given.formula ?? null) !== null) findings.add('formula', 'is removed; use code instead');
  const runtime = readRuntime(given.runtime, { findings, path: 'runtime', mayBeAsync: true });
  const code = given.code ?? '';
  if (!isCode(code)) findings.add('code', codeForm);
  const definition: ReactorDefinition = {
    code,
    configuration: readConfiguration(given.configuration ?? {}, findings),
    application_id: readLinkedApplication(given.application ?? null, findings),
    runtime,
    allowed_hosts: readHosts(given.allowed_hosts ?? null, findings),
  };
  if (runtime.image === 'node22' && definition.application_id !== null) {
    findings.add(
      'application',
      'cannot be combined with the image node22; use runtime.permissions',
    );
  }
  findings.settle();
  return { name: given.name, definition };
}

/** In lower case. */
function readHosts(given: readonly string[] | null, findings: Findings): readonly string[] | null {
  if (given === null) return null;
  if (given.length > hostsMax)
    findings.add('allowed_hosts', `must contain at most ${hostsMax} hosts`);
  for (const [index, host] of given.slice(0, hostsMax).entries()) {
    if (host.includes(',') || host.trim() === '' || flawOfDestinations(host) !== undefined) {
      const form =
        'must be the name of a host, in which * stands for any characters, without a port';
      findings.add(`allowed_hosts[${index}]`, form);
    }
  }
  return given.map((host) => host.toLowerCase());
}

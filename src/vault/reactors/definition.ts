/** What a reactor is, apart from its name and place in the database: checked settings, sealed as a whole. */
import type { ApplicationId } from '../../lib/ids.ts';
import type { CodeRuntime } from '../../transforms/code-runtime.ts';

export interface ReactorDefinition {
  readonly code: string;
  readonly configuration: Readonly<Record<string, string>>;
  /** With whose rights `bt` in the code acts. It may have been deleted since. */
  readonly application_id: ApplicationId | null;
  readonly runtime: CodeRuntime;
  /** Hosts that the code may call, in lower case and with `*`; null allows all that the tenant allows. */
  readonly allowed_hosts: readonly string[] | null;
}

/** A reactor as a request gives it. */
export interface ReactorSettings {
  readonly name: string;
  readonly definition: ReactorDefinition;
}

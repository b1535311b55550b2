/** What an import was asked for, for its steps: the check before it, the preview, the dry run, the import itself. */
import { isObject, type Json } from '../../base/json.ts';
import type { Flags } from '../terminal/command.ts';
import type { Terminal } from '../terminal/terminal.ts';
import type { Ledger } from './ledger.ts';
import type { Mapping } from './mapping.ts';
import type { VaultClient } from './vault-client.ts';

export interface ImportPlan {
  readonly file: string;
  readonly mapping: Mapping | undefined;
  readonly stdin: Terminal['stdin'];
  /** The number of the line to begin with. */
  readonly from: number;
}

export interface ImportRunTools {
  readonly client: VaultClient;
  /** Absent for standard input, which is not there a second time. */
  readonly ledger: Ledger | undefined;
  readonly flags: Flags;
  readonly terminal: Terminal;
}

/** A token with an id of its own, or one that is deduplicated, is made once however often it is sent. */
export function isNewEachTime(text: string): boolean {
  try {
    const request = JSON.parse(text) as Json;
    if (!isObject(request)) return false;
    const { id, deduplicate_token: deduplicates } = request;
    return (id === undefined || id === null) && deduplicates !== true;
  } catch {
    return false;
  }
}

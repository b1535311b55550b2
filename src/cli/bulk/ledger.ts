/** What of a file was imported: a digest of each line, next to the file, so that none becomes two tokens unnoticed. */
import { closeSync, existsSync, openSync, readFileSync, writeSync } from 'node:fs';
import { isObject, type Json } from '../../base/json.ts';
import { importedLineDigestLength, importedLineDigestOf } from '../../keys/digest.ts';

export interface Ledger {
  /** Whether a line like this was imported before, more often than it was met in this file so far. */
  wasImported(line: string): boolean;
  /** Forgets which lines were met. */
  rewind(): void;
  /** Of the last import with this key. */
  readonly importedAt: string | undefined;
  /** When the file was imported to this address with another key, whose lines cannot be compared. */
  readonly otherImportAt: string | undefined;
  /** Writes that the vault has the token of a line, so that it survives the end of this process. */
  add(line: string): void;
  close(): void;
}

interface LedgerRun {
  readonly key: string;
  readonly url: string;
  readonly at: string;
}

export interface LedgerPlace {
  readonly file: string;
  readonly key: string;
  readonly url: string;
  readonly now: Date;
}

export function openLedger({ file, key, url, now }: LedgerPlace): Ledger {
  const digest = (text: string) => importedLineDigestOf(key, text);
  const own: LedgerRun = { key: digest('the key itself'), url, at: now.toISOString() };
  const { counts, importedAt, otherImportAt } = readLedger(file, own);
  let met = new Map<string, number>();
  let descriptor: number | undefined;
  return {
    importedAt,
    otherImportAt,
    wasImported: (line) => {
      const name = digest(line);
      const before = met.get(name) ?? 0;
      if (before >= (counts.get(name) ?? 0)) return false;
      met.set(name, before + 1);
      return true;
    },
    rewind: () => {
      met = new Map();
    },
    add: (line) => {
      if (descriptor === undefined) {
        descriptor = openSync(file, 'a', 0o600);
        writeSync(descriptor, `${JSON.stringify(own)}\n`);
      }
      writeSync(descriptor, `${digest(line)}\n`);
    },
    close: () => {
      if (descriptor !== undefined) closeSync(descriptor);
    },
  };
}

/** How often each line was imported with this key. */
function readLedger(file: string, own: LedgerRun) {
  const counts = new Map<string, number>();
  let run: LedgerRun | undefined;
  let importedAt: string | undefined;
  let otherImportAt: string | undefined;
  for (const line of existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []) {
    run = line.startsWith('{') ? runIn(line) : run;
    if (run === undefined) continue;
    if (run.key === own.key) {
      importedAt = run.at;
      if (line.length === importedLineDigestLength) counts.set(line, (counts.get(line) ?? 0) + 1);
    } else if (run.url === own.url) {
      otherImportAt = run.at;
    }
  }
  return { counts, importedAt, otherImportAt };
}

function runIn(line: string): LedgerRun | undefined {
  try {
    const value = JSON.parse(line) as Json;
    return isObject(value) ? (value as unknown as LedgerRun) : undefined;
  } catch {
    // The process ended while it wrote this line.
    return undefined;
  }
}

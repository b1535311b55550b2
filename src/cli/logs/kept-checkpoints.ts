/** Checkpoints that an auditor kept: responses of GET /logs/checkpoint, or the lines of a sink's file. */
import { type Checkpoint, openCheckpoint } from '../../audit/statements.ts';
import type { KeptStatement } from '../../audit/verify.ts';
import { isObject } from '../../base/json.ts';
import { UsageError } from '../terminal/command.ts';
import { readGivenFile } from '../terminal/given-text.ts';
import type { Terminal } from '../terminal/terminal.ts';

/** A sink's file has a line a minute. Longer ones make no string. */
const keptBytesMax = 500 * 1024 * 1024;

export interface KeptCheckpoint {
  readonly signed: KeptStatement;
  readonly checkpoint: Checkpoint;
}

/** @throws UsageError for a file that holds none, or something else as well. */
export function readKept(
  { stderr }: Terminal,
  files: readonly string[],
): readonly KeptCheckpoint[] {
  return files.flatMap((file) => {
    const text = readGivenFile(file, { bytesMax: keptBytesMax });
    const whole = parseJson(text);
    const skip = (number: number) =>
      stderr.write(`Line ${number} of ${file} is not JSON and was skipped.\n`);
    const values = whole === undefined ? linesOf(text, skip) : [whole];
    if (values.length === 0) throw new UsageError('--checkpoint names a file without a checkpoint');
    return values.map(keptOf);
  });
}

/** A line that is cut short, which a full disk or a crash leaves, is skipped and reported. */
function linesOf(text: string, skip: (number: number) => void): unknown[] {
  return text.split('\n').flatMap((line, index) => {
    if (line.trim() === '') return [];
    const value = parseJson(line);
    if (value !== undefined) return [value];
    skip(index + 1);
    return [];
  });
}

function keptOf(value: unknown): KeptCheckpoint {
  const { statement, signature, public_key, public_keys } = isObject(value) ? value : {};
  const signed = {
    statement: String(statement ?? ''),
    signature: String(signature ?? ''),
    public_key: String(public_key ?? ''),
    ...(Array.isArray(public_keys) && { public_keys: public_keys.map(String) }),
  };
  const checkpoint = openCheckpoint(signed);
  if (!checkpoint) throw new UsageError('--checkpoint names a file without a checkpoint');
  return { signed, checkpoint };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

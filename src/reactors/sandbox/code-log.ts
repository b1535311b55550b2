/** The log of one call, for the tenant. It never reaches the operator's log. */
import { isObject } from '../../base/json.ts';
import { frameHeaderBytes } from './frames.ts';
import { parseHostile } from './hostile-json.ts';
import * as limits from './limits.ts';
import type { CodeLogLevel, CodeLogLine } from './sandbox.ts';

const levels = new Set<string>(['debug', 'info', 'warn', 'error'] satisfies CodeLogLevel[]);

export class CodeLog {
  readonly lines: CodeLogLine[] = [];
  #bytes = 0;
  #bytesRead = 0;
  #isFull = false;

  /** False once a process has sent much more than the log stores. */
  add(payload: Buffer): boolean {
    this.#bytesRead += frameHeaderBytes + payload.length;
    if (!this.#isFull) this.#keep(payload);
    return this.#bytesRead <= limits.logBytesReadMax;
  }

  #keep(payload: Buffer): void {
    const line = parseHostile(payload)?.value;
    if (!isObject(line)) return;
    const { level, text } = line;
    if (typeof level !== 'string' || !levels.has(level) || typeof text !== 'string') return;
    this.#bytes += Buffer.byteLength(text);
    this.#isFull = this.#bytes > limits.logBytesMax || this.lines.length >= limits.logLinesMax - 1;
    const kept = this.#isFull ? { level: 'warn', text: fullText } : { level, text };
    this.lines.push({ ...kept, at: Date.now() } as CodeLogLine);
  }
}

const fullText = `The log is full: a call has at most ${limits.logBytesMax} bytes and ${limits.logLinesMax} lines.`;

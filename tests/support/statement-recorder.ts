/**
 * Preloaded into a vault, into its threads too: writes every SQL statement that is prepared or sent to the
 * file that STATEMENTS_FILE names, a JSON text a line, each once in a thread.
 */
import { appendFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';

const file = process.env['STATEMENTS_FILE'];
const seen = new Set<string>();

function record(statement: unknown): void {
  const text = typeof statement === 'string' ? statement : (statement as { text: string }).text;
  if (file === undefined || seen.has(text)) return;
  seen.add(text);
  appendFileSync(file, `${JSON.stringify(text)}\n`);
}

type Method = (this: unknown, statement: unknown, ...rest: unknown[]) => unknown;

function listenTo(prototype: object, name: string): void {
  const methods = prototype as Record<string, Method>;
  const original = methods[name];
  if (original === undefined) throw new Error(`there is no ${name} to listen to`);
  methods[name] = function (statement, ...rest) {
    record(statement);
    return original.call(this, statement, ...rest);
  };
}

listenTo(DatabaseSync.prototype, 'prepare');
listenTo(DatabaseSync.prototype, 'exec');
listenTo(pg.Client.prototype, 'query');

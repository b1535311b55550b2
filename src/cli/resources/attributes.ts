/** The attributes of an operation as options: their help, and the values that are given. */
import { isObject, type JsonObject } from '../../base/json.ts';
import { type Flag, type Flags, UsageError } from '../terminal/command.ts';
import { readGivenFile, readGivenStream } from '../terminal/given-text.ts';
import type { Terminal } from '../terminal/terminal.ts';
import type { Attribute } from './description.ts';

/**
 * What may be secret is never an argument, which other users of the machine can see and the shell records: it comes
 * from a file, or from standard input.
 */
const secretNames: ReadonlySet<string> = new Set([
  'args',
  'client_certificate',
  'client_key',
  'code',
  'configuration',
  'data',
  'encrypted',
  'nonce',
  'secret',
]);

const standardInput = '-';

const fromFile = (description: string) => `${description} A file, or - for standard input`;

export function flagOf({ name, description, form, choices }: Attribute): Flag {
  if (secretNames.has(name) || form === 'json') {
    return { kind: 'string', value: 'FILE', meaning: fromFile(description) };
  }
  const values = {
    boolean: 'true|false',
    number: 'NUMBER',
    map: 'NAME=TEXT',
    text: 'TEXT',
    texts: 'TEXT',
  };
  return {
    kind: 'string',
    value: values[form],
    meaning: description,
    ...((form === 'texts' || form === 'map') && { repeated: true as const }),
    ...(form === 'boolean' ? { choices: ['true', 'false'] } : choices && { choices }),
  };
}

/** `expires_at` is `--expires-at`. */
export function flagNameOf({ name }: Pick<Attribute, 'name'>): string {
  return name.replaceAll('_', '-');
}

/** The values of the attributes that were given, by name. Standard input can be one of them. */
export async function valuesOf(
  attributes: readonly Attribute[],
  flags: Flags,
  terminal: Terminal,
): Promise<JsonObject> {
  const given = attributes.filter((one) => flags[flagNameOf(one)] !== undefined);
  const piped = given.filter((one) => flags[flagNameOf(one)] === standardInput && isFile(one));
  if (piped.length > 1) throw new UsageError('only one option can read standard input');
  const values: [string, unknown][] = [];
  for (const one of given) values.push([one.name, await valueIn(one, flags, terminal)]);
  return Object.fromEntries(values) as JsonObject;
}

function isFile({ name, form }: Attribute): boolean {
  return secretNames.has(name) || form === 'json';
}

async function valueIn(attribute: Attribute, flags: Flags, terminal: Terminal): Promise<unknown> {
  const { form } = attribute;
  const flag = flagNameOf(attribute);
  const given = flags[flag];
  if (isFile(attribute)) {
    const text = await contentsOf(String(given), terminal);
    return form === 'text' ? withoutLastBreak(text) : jsonOrText(text, flag);
  }
  if (form === 'texts') return given;
  if (form === 'map')
    return Object.fromEntries([given ?? []].flat().map((one) => pairOf(String(one), flag)));
  if (form === 'number') return numberOf(String(given), flag);
  if (form === 'boolean') return booleanOf(String(given), flag);
  return given;
}

async function contentsOf(file: string, { stdin }: Terminal): Promise<string> {
  if (file !== standardInput) return readGivenFile(file, { mayBeEmpty: true });
  return readGivenStream('standard input', stdin);
}

/** A text that is no JSON object, list or string is meant as it is: a card number is no number. */
function jsonOrText(text: string, flag: string): unknown {
  if (!/^\s*[[{"]/.test(text)) return withoutLastBreak(text);
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError(`the file of --${flag} begins like JSON and is not`);
  }
}

/** @throws UsageError unless the file has a JSON object. */
export async function objectIn(
  file: string,
  flag: string,
  terminal: Terminal,
): Promise<JsonObject> {
  const value = jsonOrText(await contentsOf(file, terminal), flag);
  if (isObject(value)) return value as JsonObject;
  throw new UsageError(`the file of --${flag} must contain a JSON object`);
}

function withoutLastBreak(text: string): string {
  return text.replace(/\r?\n$/, '');
}

function pairOf(text: string, flag: string): [string, string] {
  const at = text.indexOf('=');
  if (at < 1) throw new UsageError(`--${flag} must be NAME=TEXT`);
  return [text.slice(0, at), text.slice(at + 1)];
}

function numberOf(text: string, flag: string): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value)) return value;
  throw new UsageError(`--${flag} must be a number`);
}

function booleanOf(text: string, flag: string): boolean {
  if (text === 'true' || text === 'false') return text === 'true';
  throw new UsageError(`--${flag} must be true or false`);
}

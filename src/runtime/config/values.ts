/** Values of variables: numbers, words of a list, files, and results of parsers elsewhere. */
import { readFileSync } from 'node:fs';
import { VaultError } from '../../base/errors.ts';
import { wrongVariable } from './problems.ts';
import type { ReadVariable, VariableName } from './variables.ts';

/** The result of `parse` for a variable. Its errors are reported under the variable's name. */
export function parsed<T>(
  read: ReadVariable,
  name: VariableName,
  parse: (text: string) => T,
): T | undefined {
  const text = read(name);
  try {
    return text === undefined ? undefined : parse(text);
  } catch (error) {
    if (!(error instanceof VaultError)) throw error;
    throw wrongVariable(
      `STRONGROOM_${name}`,
      Object.values(error.errors ?? {})
        .flat()
        .join('; '),
    );
  }
}

export function readFlag(read: ReadVariable, name: VariableName): boolean {
  const text = read(name) ?? 'false';
  return oneOf(`STRONGROOM_${name}`, text, ['true', 'false']) === 'true';
}

interface NumberForm {
  /** The default if the variable is not set. */
  readonly given: number;
  readonly min: number;
  readonly max: number;
}

export function readNumber(
  read: ReadVariable,
  name: VariableName,
  { given, min, max }: NumberForm,
): number {
  const text = read(name) ?? String(given);
  const value = Number(text);
  if (/^[0-9]{1,9}$/.test(text) && value >= min && value <= max) return value;
  throw wrongVariable(`STRONGROOM_${name}`, `must be a whole number from ${min} to ${max}`);
}

export function readPort(text = '8080'): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port;
  const link = /^(?:tcp|udp):\/\//.test(text)
    ? '. Kubernetes sets it for a Service of this name: set enableServiceLinks to false'
    : '';
  throw wrongVariable('STRONGROOM_PORT', `must be a port from 0 to 65535${link}`);
}

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** An address to listen on, such as `127.0.0.1:9464` or `[::1]:9464`. */
export function readAddress(read: ReadVariable, name: VariableName): Address | undefined {
  const text = read(name);
  if (text === undefined) return undefined;
  const [, host = '', port = ''] = /^(\[[0-9A-Fa-f:.]+\]|[^\s:/[\]]+):(\d{1,5})$/.exec(text) ?? [];
  if (host !== '' && Number(port) <= 65_535) {
    return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) };
  }
  throw wrongVariable(`STRONGROOM_${name}`, 'must be an address such as 127.0.0.1:9464');
}

export function readText(variable: string, file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    throw wrongVariable(variable, 'names a file that cannot be read');
  }
}

export function oneOf<T extends string>(variable: string, text: string, values: readonly T[]): T {
  const found = values.find((value) => value === text);
  if (found !== undefined) return found;
  throw wrongVariable(variable, `must be one of ${values.join(', ')}`);
}

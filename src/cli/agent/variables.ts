/** The file that lists the variables of a program: for each, whose value a placeholder stands for. */
import { isObject } from '../../base/json.ts';
import type { Profile } from '../resources/profiles.ts';
import { requestVault } from '../resources/request.ts';
import { UsageError } from '../terminal/command.ts';
import { readGivenFile } from '../terminal/given-text.ts';
import { ResponseError } from '../terminal/response-error.ts';
import { decidesWhereRequestsGo } from './environment.ts';

interface ListedVariable {
  readonly name: string;
  readonly form: 'key' | 'number';
  readonly tokenId: string;
  readonly property: string | undefined;
}

const forms = { token: 'key', digits: 'number' } as const;
const lineForm = /^([A-Za-z_]\w*)=(token|digits):([^\s#]+)(?:#(\w+))?$/;
const lineMeaning =
  'must be NAME=token:ID or NAME=token:ID#property, with "digits" in place of "token" for a card number of digits';

/**
 * @throws UsageError with the number of a line that is wrong, and never with the line: somebody may have written a
 * value there.
 */
export function readVariablesFile(file: string): readonly ListedVariable[] {
  const found = new Map<string, ListedVariable>();
  for (const [index, line] of readGivenFile(file).split(/\r?\n/).entries()) {
    const text = line.trim();
    if (text === '' || text.startsWith('#')) continue;
    const at = `line ${index + 1} of ${file}`;
    const [, name = '', form = '', tokenId = '', property] = lineForm.exec(text) ?? [];
    if (form !== 'token' && form !== 'digits') throw new UsageError(`${at} ${lineMeaning}`);
    if (decidesWhereRequestsGo(name))
      throw new UsageError(`${at}: the command sets ${name} itself`);
    if (found.has(name)) throw new UsageError(`${at}: ${name} is there twice`);
    found.set(name, { name, form: forms[form], tokenId, property });
  }
  return [...found.values()];
}

/**
 * Makes a placeholder for each.
 * @throws ResponseError with the name of the variable whose placeholder the vault refuses.
 */
export async function placeholdersFor(
  profile: Profile,
  variables: readonly ListedVariable[],
): Promise<Readonly<Record<string, string>>> {
  const made: Record<string, string> = {};
  for (const { name, form, tokenId, property } of variables) {
    const response = await requestVault(profile, {
      method: 'POST',
      path: '/placeholders',
      mediaType: 'application/json',
      body: { token_id: tokenId, form, ...(property !== undefined && { property }) },
    }).catch((error: unknown) => {
      if (!(error instanceof ResponseError)) throw error;
      throw new ResponseError(`${name}: ${error.message}`, error.status);
    });
    const text = isObject(response) ? response['placeholder'] : undefined;
    if (typeof text !== 'string') throw new ResponseError('the response has no placeholder');
    made[name] = text;
  }
  return made;
}

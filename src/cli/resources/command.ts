/** A command for a resource, made from the declaration of its operation. */
import { isObject, type JsonObject } from '../../base/json.ts';
import { tokenTypes } from '../../tokens/contents/token-types.ts';
import { type Command, type Flag, type Flags, UsageError } from '../terminal/command.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { flagNameOf, flagOf, objectIn, valuesOf } from './attributes.ts';
import { type Attribute, type CommandOperation, describedOperation } from './description.ts';
import type { ListedResource } from './ids.ts';
import { outputFlags, printResponse } from './output.ts';
import { type Profile, profileFor } from './profiles.ts';
import { requestVault } from './request.ts';
import type { ResourceCommandRow } from './table.ts';

const profileFlag: Flag = {
  kind: 'string',
  value: 'NAME',
  ids: 'profile',
  meaning:
    'a vault and a key that strongroom login has stored (default: STRONGROOM_KEY, or the current profile)',
};

const bodyFlag: Flag = {
  kind: 'string',
  value: 'FILE',
  meaning: 'the whole body as JSON, which other options change; - for standard input',
};

const unsetFlag: Flag = {
  kind: 'string',
  value: 'ATTRIBUTE',
  repeated: true,
  meaning: 'remove an attribute',
};

export function resourceCommand(row: ResourceCommandRow): Command {
  const { operands = [], columns, examples } = row;
  const operation = describedOperation(row.operation);
  const attributes = [...operation.query, ...operation.body].filter(
    ({ name }) => !operands.includes(name) && name !== 'privacy',
  );
  const isPatch = operation.mediaType === 'application/merge-patch+json';
  return {
    summary: summaryOf(operation),
    operand: operands.map((name) => ({
      name: name.toUpperCase(),
      meaning: meaningOf(operation, name),
      ...(name === 'id' && row.ids !== undefined && { ids: row.ids }),
    })),
    flags: {
      ...Object.fromEntries(
        attributes.map((one) => [flagNameOf(one), { ...flagOf(one), ...offersOf(row, one) }]),
      ),
      ...(operation.mediaType !== undefined && { body: bodyFlag }),
      ...((isPatch || row.reads !== undefined) && { unset: unsetFlag }),
      ...outputFlags,
      profile: profileFlag,
    },
    examples,
    run: async (flags, terminal) => {
      const named = flags['profile'];
      const profile = profileFor(terminal.env, typeof named === 'string' ? named : undefined);
      const path = pathOf(operation, operands, flags);
      const body = await bodyOf({ row, operation, flags, terminal, profile, path });
      const query = await valuesOf(operation.query, flags, terminal);
      const response = await requestVault(profile, {
        method: operation.method,
        path: path + queryOf(query),
        ...(body && { body, mediaType: operation.mediaType }),
      });
      printResponse(terminal, flags, { response, columns });
      return 0;
    },
  };
}

const idsByAttribute: Readonly<Record<string, ListedResource>> = {
  application_id: 'app',
  reactor_id: 'reactor',
  request_reactor_id: 'reactor',
  response_reactor_id: 'reactor',
  proxy_id: 'proxy',
};

/** What shells complete the value of an attribute with. */
function offersOf({ operation }: ResourceCommandRow, { name }: Attribute): Partial<Flag> {
  const ids = idsByAttribute[name];
  if (ids !== undefined) return { ids };
  const isType = name === 'type' && operation === 'createToken';
  return isType ? { offered: Object.keys(tokenTypes) } : {};
}

function summaryOf({ summary, description = '' }: CommandOperation): string {
  const sentence = `${summary.replace(/\.$/, '')}.`;
  return [sentence, description.replaceAll('\n\n', ' ')].join(' ').trim();
}

function meaningOf({ query, body }: CommandOperation, name: string): string {
  return [...query, ...body].find((one) => one.name === name)?.description ?? 'its id';
}

/** @throws UsageError if an id is missing. */
function pathOf({ path }: CommandOperation, operands: readonly string[], flags: Flags): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    if (!operands.includes(name)) throw new Error(`no operand is the parameter ${name}`);
    const value = flags[name.toUpperCase()];
    if (typeof value === 'string' && value !== '') return encodeURIComponent(value);
    throw new UsageError(`the ${name.toUpperCase()} is missing`);
  });
}

interface BodyOptions {
  readonly row: ResourceCommandRow;
  readonly operation: CommandOperation;
  readonly flags: Flags;
  readonly terminal: Terminal;
  readonly profile: Profile;
  readonly path: string;
}

async function bodyOf(options: BodyOptions): Promise<JsonObject | undefined> {
  const { row, operation, flags, terminal } = options;
  if (operation.mediaType === undefined) return undefined;
  const { body: file, unset } = flags;
  const whole = typeof file === 'string' ? await objectIn(file, 'body', terminal) : {};
  const operands = (row.operands ?? []).flatMap((name) => {
    const isOfBody = operation.body.some((one) => one.name === name);
    const value = flags[name.toUpperCase()];
    return isOfBody && typeof value === 'string' ? [[name, value] as const] : [];
  });
  const given = await valuesOf(operation.body, flags, terminal);
  const removed = [unset ?? []].flat().map(String);
  for (const name of removed) {
    if (!operation.body.some((one) => one.name === name))
      throw new UsageError(`--unset ${known(operation.body)}`);
  }
  const nulls = row.reads === undefined ? removed.map((name) => [name, null] as const) : [];
  const stored = row.reads === undefined ? {} : await storedBody(options, removed);
  return {
    ...stored,
    ...whole,
    ...Object.fromEntries(operands),
    ...given,
    ...Object.fromEntries(nulls),
  };
}

function known(attributes: readonly Attribute[]): string {
  return `must be one of: ${attributes.map(({ name }) => name).join(', ')}`;
}

/** The resource as it is, as far as an update takes it. */
async function storedBody(
  { operation, profile, path }: BodyOptions,
  removed: readonly string[],
): Promise<JsonObject> {
  const stored = await requestVault(profile, { method: 'GET', path });
  const taken = operation.body.map(({ name }) => name).filter((name) => !removed.includes(name));
  return Object.fromEntries(
    Object.entries(isObject(stored) ? stored : {}).filter(([name]) => taken.includes(name)),
  ) as JsonObject;
}

function queryOf(values: JsonObject): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (isObject(value))
      for (const [key, text] of Object.entries(value)) query.append(`${name}.${key}`, String(text));
    else for (const one of [value].flat()) query.append(name, String(one));
  }
  const text = query.toString();
  return text === '' ? '' : `?${text}`;
}

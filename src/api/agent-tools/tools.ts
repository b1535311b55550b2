/** The tools that agents get by the Model Context Protocol, made of the operations that the service offers. */
import Type, { type Static } from 'typebox';
import { invalid } from '../../base/errors.ts';
import { isObject } from '../../base/json.ts';
import { isProblem, type ListedTool } from '../../http/mcp/call-tool.ts';
import type { AgentTool } from '../../http/mcp/tool.ts';
import { problemMediaType } from '../../http/protocol/problem.ts';
import { egressMethods } from '../../rules/egress-policies.ts';
import type { Section } from '../declaration/operation.ts';
import { attribute, object } from '../declaration/shape.ts';
import { anyJson, line, mapOf, strict } from '../shapes.ts';
import { attributesOf, declared, listed } from './schemas.ts';
import { tokenizeText } from './tokenize-text.ts';

/** In the order in which agents see them. */
export function agentTools(sections: readonly Section[]): readonly ListedTool[] {
  const tools = [
    listTokens(sections),
    getToken(sections),
    createPlaceholder(sections),
    listDestinations,
    httpRequest,
    tokenizeText(sections),
    listEvents(sections),
  ];
  return tools.map(listed);
}

/** What agents see of a token. What shows whether values are equal is left out: nobody finds one by guessing. */
const shownOfToken = [
  'id',
  'type',
  'data',
  'card',
  'bank',
  'network_token',
  'containers',
  'metadata',
];
const datesOfToken = ['expires_at', 'created_at', 'modified_at'];

function describedToken(token: unknown): object {
  const found = isObject(token) ? token : {};
  const names = [...shownOfToken, ...datesOfToken].filter((name) => found[name] !== undefined);
  return Object.fromEntries(names.map((name) => [name, found[name]]));
}

function listTokens(sections: readonly Section[]): AgentTool {
  const operation = declared(sections, 'listTokens');
  const filters = ['id', 'container', 'type', 'size', 'start'];
  const metadata = attribute(
    Type.Optional(mapOf(line({ maxLength: 1_000 }))),
    'Only with these metadata.',
  );
  return {
    name: 'list_tokens',
    description:
      'Find tokens, newest first. Data is masked. Follow pagination.next until it is absent.',
    input: object({ ...attributesOf(operation.query, filters), metadata }, strict),
    run: async ({ perform }, { metadata: wanted = {}, ...query }: { metadata?: object }) => {
      const named = Object.entries(wanted).map(([name, value]) => [`metadata.${name}`, value]);
      const input = { query: { ...query, ...Object.fromEntries(named) } };
      const { pagination, data } = (await perform(operation, input)) as {
        readonly pagination: object;
        readonly data: readonly unknown[];
      };
      return { pagination, tokens: data.map(describedToken) };
    },
  };
}

function getToken(sections: readonly Section[]): AgentTool {
  const operation = declared(sections, 'getToken');
  return {
    name: 'get_token',
    description: 'Describe a token. Its data is masked.',
    input: object(attributesOf(operation.params, ['id']), strict),
    run: async ({ perform }, params: object) =>
      describedToken(await perform(operation, { params })),
  };
}

function createPlaceholder(sections: readonly Section[]): AgentTool {
  const operation = declared(sections, 'createPlaceholder');
  const names = ['token_id', 'property', 'form', 'expires_at'];
  return {
    name: 'create_placeholder',
    description:
      'Make a placeholder for the value of a token. Put it into a request where a destination has a place for it.',
    input: object(attributesOf(operation.body, names), strict),
    run: async ({ performUnopened }, body: object) =>
      (await performUnopened(operation, { body })) as object,
  };
}

const listDestinations: AgentTool = {
  name: 'list_destinations',
  description:
    'List the hosts to which requests may be sent: methods, paths, and the places where placeholders may stand. ' +
    'The first destination that matches a request decides.',
  input: object({}, strict),
  run: async ({ caller: { egress = [] } }) => ({ destinations: egress }),
};

const requestInput = object(
  {
    method: attribute(Type.Enum([...egressMethods]), 'The method.'),
    url: attribute(line({ minLength: 1, maxLength: 8_000 }), 'Where the request is sent.'),
    headers: attribute(
      Type.Optional(mapOf(line({ maxLength: 8_000 }))),
      'Headers by their names. Placeholders may stand where the destination has `header:NAME`.',
    ),
    json: attribute(
      Type.Optional(anyJson),
      'A JSON body. Placeholders may stand where the destination has `json:PATH`.',
    ),
    body: attribute(
      Type.Optional(Type.String({ maxLength: 524_288 })),
      'Another body, such as a form, with its media type in the header content-type.',
    ),
  },
  strict,
);

const httpRequest: AgentTool = {
  name: 'http_request',
  description:
    'Send a request to a destination. Placeholders in it become values on the way, and values in the response ' +
    'are overwritten with asterisks. Redirects are not followed.',
  input: requestInput,
  run: async ({ send }, { method, url, headers = {}, json, body }: Static<typeof requestInput>) => {
    if (json !== undefined && body !== undefined) {
      throw invalid('body', 'must be absent where json is given');
    }
    const type = json === undefined ? {} : { 'content-type': 'application/json' };
    const text = json === undefined ? body : JSON.stringify(json);
    const response = await send({ method, url, headers: { ...type, ...headers }, body: text });
    return problemIn(response) ?? response;
  },
};

/** After the prefix, which operators choose. */
const statusSuffix = '-proxy-destination-status';

/** What the vault itself responds with, in the place of a destination. */
function problemIn({
  headers,
  body,
}: {
  headers: Readonly<Record<string, unknown>>;
  body: string;
}) {
  const isOfDestination = Object.keys(headers).some((name) => name.endsWith(statusSuffix));
  if (isOfDestination || headers['content-type'] !== problemMediaType) return undefined;
  try {
    const problem: unknown = JSON.parse(body);
    return isProblem(problem) ? problem : undefined;
  } catch {
    return undefined;
  }
}

function listEvents(sections: readonly Section[]): AgentTool {
  const operation = declared(sections, 'listLogs');
  const filters = ['entity_type', 'entity_id', 'operation', 'result', 'size', 'start'];
  const since = attribute(
    Type.Optional(line({ maxLength: 40 })),
    'An ISO 8601 date or date-time; events from then on.',
  );
  // Whoever has the key may know what was done with it.
  const ofOwnKey = { ...operation, permission: 'any key' } as const;
  return {
    name: 'list_events',
    description: 'List what was done with this key, newest first, as the audit log has it.',
    input: object({ since, ...attributesOf(operation.query, filters) }, strict),
    run: async ({ perform, caller }, { since: from, ...query }: { since?: string }) => {
      const own = { ...query, ...(from && { start_date: from }), key_id: caller.key };
      const { pagination, data } = (await perform(ofOwnKey, { query: own })) as {
        readonly pagination: object;
        readonly data: readonly unknown[];
      };
      return { pagination, events: data };
    },
  };
}

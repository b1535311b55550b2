/** The tool that takes what is sensitive out of a text, and puts placeholders in its place. */
import Type, { type Static } from 'typebox';
import { parseContainer } from '../../base/container.ts';
import { invalid, VaultError } from '../../base/errors.ts';
import type { TokenId } from '../../base/ids.ts';
import { isObject } from '../../base/json.ts';
import type { AgentTool, ToolTools } from '../../http/mcp/tool.ts';
import { policyHasToken } from '../../rules/egress-policies.ts';
import { type FoundValue, findSensitive, storedKinds } from '../../tokens/sensitive-text.ts';
import type { Section } from '../declaration/operation.ts';
import { attribute, object } from '../declaration/shape.ts';
import { strict } from '../shapes.ts';
import { container } from '../token-shapes.ts';
import { declared } from './schemas.ts';

export const textLengthMax = 65_536;
export const valuesMax = 100;

const input = object(
  {
    text: attribute(Type.String({ maxLength: textLengthMax }), 'Any text.'),
    container: attribute(
      Type.Optional(container),
      'Where the tokens are; by the kind of the value unless given.',
    ),
  },
  strict,
);

export function tokenizeText(sections: readonly Section[]): AgentTool {
  const tokenize = declared(sections, 'tokenize');
  const createPlaceholder = declared(sections, 'createPlaceholder');

  async function store(
    { perform }: ToolTools,
    values: readonly FoundValue[],
    given: string | undefined,
  ) {
    const body = values.map(({ kind, value }) => {
      const { container: own, ...stored } = storedKinds[kind];
      const place = given ?? own;
      return { ...stored, data: value, ...(place !== undefined && { containers: [place] }) };
    });
    const tokens = values.length === 0 ? [] : await perform(tokenize, { body });
    return tokens as readonly { readonly id: TokenId; readonly containers?: readonly string[] }[];
  }

  /** Where no policy has the token, an expression, which proxies and reactors understand. */
  async function standIn({ performUnopened, caller }: ToolTools, id: TokenId, place: string) {
    const inContainer = parseContainer(place);
    const subject = inContainer && { id, container: inContainer };
    if (subject && caller.egress?.some((policy) => policyHasToken(policy, subject))) {
      try {
        const made = await performUnopened(createPlaceholder, { body: { token_id: id } });
        if (isObject(made) && typeof made['placeholder'] === 'string') return made['placeholder'];
      } catch (error) {
        if (!(error instanceof VaultError) || error.code !== 'forbidden') throw error;
      }
    }
    return `{{ ${id} }}`;
  }

  return {
    name: 'tokenize_text',
    description:
      'Store the card numbers, IBANs, social security numbers, and API keys in a text as tokens, and give back the ' +
      'text with a placeholder in the place of each.',
    input,
    run: async (tools, { text, container: given }: Static<typeof input>) => {
      const found = await findSensitive(text);
      const distinct = [...new Map(found.map((one) => [`${one.kind} ${one.value}`, one])).values()];
      if (distinct.length > valuesMax)
        throw invalid('text', `must have at most ${valuesMax} values that are sensitive`);
      const tokens = await store(tools, distinct, given);
      const stored = new Map<string, { kind: string; token_id: string; placeholder: string }>();
      for (const [at, { kind, value }] of distinct.entries()) {
        const token = tokens[at];
        if (!token) continue;
        const [place = ''] = token.containers ?? [];
        const placeholder = await standIn(tools, token.id, place);
        stored.set(`${kind} ${value}`, { kind, token_id: token.id, placeholder });
      }
      return { text: replaced(text, found, stored), tokens: [...stored.values()] };
    },
  };
}

function replaced(
  text: string,
  found: readonly FoundValue[],
  stored: ReadonlyMap<string, { readonly placeholder: string }>,
): string {
  let made = '';
  let end = 0;
  for (const { start, end: next, kind, value } of found) {
    made += text.slice(end, start) + (stored.get(`${kind} ${value}`)?.placeholder ?? '');
    end = next;
  }
  return made + text.slice(end);
}

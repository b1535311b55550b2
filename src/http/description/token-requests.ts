/** The create request as a union: one member for each type of token, and one for a token intent. */
import Type, { type TSchema } from 'typebox';
import { type TokenTypeName, tokenTypes } from '../../values/token-types.ts';
import { typeWithoutIntents } from '../../vault/token-intents/token-intents.ts';
import type { Schema } from '../schemas/shared.ts';
import { strict, text } from '../schemas/shared.ts';
import { tokenRequest } from '../schemas/token.ts';
import { tokenData } from '../schemas/token-data.ts';
import { tokenIntentRequest } from '../schemas/token-intent.ts';
import type { Components } from './components.ts';

export const tokenTypeNames = Object.keys(tokenTypes) as TokenTypeName[];

/** What the description says in the place of these schemas, which leave it to the type what data may be. */
export function unionOf(components: Components, schema: TSchema): Schema | undefined {
  if (schema === tokenRequest) return requestUnion(components);
  if (schema === tokenIntentRequest) return typedUnion(components, 'TokenIntent', {});
  return undefined;
}

function requestUnion(components: Components): Schema {
  const { type: _type, data: _data, token_intent_id: _intent, ...others } = tokenRequest.properties;
  const fromIntent = Type.Object(
    { token_intent_id: text, ...others },
    { ...strict, title: 'ConvertTokenIntent', description: 'A token from a token intent.' },
  );
  return { anyOf: [typedUnion(components, 'Token', others), components.refer(fromIntent)] };
}

function typedUnion(
  components: Components,
  noun: 'Token' | 'TokenIntent',
  others: Readonly<Record<string, TSchema>>,
): Schema {
  const names = tokenTypeNames.filter((type) => noun === 'Token' || type !== typeWithoutIntents);
  const members = names.map((type) => {
    const member = Type.Object(
      { type: Type.Literal(type), data: tokenData[type], ...others },
      {
        ...strict,
        title: `Create${pascal(type)}${noun}`,
        description: `For the type \`${type}\`.`,
      },
    );
    return [type, components.refer(member)] as const;
  });
  return {
    oneOf: members.map(([, schema]) => schema),
    discriminator: {
      propertyName: 'type',
      mapping: Object.fromEntries(members.map(([type, schema]) => [type, schema['$ref']])),
    },
  };
}

/** `card_number` as `CardNumber`. */
function pascal(name: string): string {
  return name.replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase());
}

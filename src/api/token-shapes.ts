/** Shapes of tokens and of requests that create and update them; `tokens/contents/token-types.ts` checks their data. */
import Type, { type TSchema } from 'typebox';
import { containerLengthMax, containerPattern } from '../base/container.ts';
import { compileValidator, type ValidationResult } from '../http/protocol/validation.ts';
import {
  metadataKeyLengthMax,
  metadataKeysMax,
  searchIndexesMax,
  type TokenPatch,
  type TokenRequest,
} from '../tokens/contents/contents.ts';
import { type TokenTypeName, tokenTypes } from '../tokens/contents/token-types.ts';
import { typeWithoutIntents } from '../tokens/intents/token-intents.ts';
import {
  type Attributes,
  attribute,
  documented,
  object,
  shownAs,
  titleOf,
} from './declaration/shape.ts';
import {
  anyJson,
  nullable,
  shared,
  strict,
  text,
  textMap,
  textOrNullMap,
  timestamp,
} from './shapes.ts';

/** A container, as it is checked behind the schema. */
export const containerLimits = { pattern: containerPattern.source, maxLength: containerLengthMax };
export const container = documented(text, containerLimits);

const cardSummary = object(
  {
    bin: attribute(
      Type.Optional(text),
      'The first six digits of the number, or eight of a longer one.',
    ),
    last4: attribute(Type.Optional(text), 'The last four digits of the number.'),
    expiration_month: attribute(Type.Optional(Type.Integer()), 'From 1 to 12.'),
    expiration_year: attribute(Type.Optional(Type.Integer()), 'Of four digits.'),
    brand: attribute(Type.Optional(text), 'The network of the card.'),
  },
  { title: 'CardSummary' },
);

const bankSummary = object(
  {
    routing_number: attribute(Type.Optional(text), 'An ABA routing number.'),
    account_number_last4: attribute(Type.Optional(text), 'The last four digits of the number.'),
  },
  { title: 'BankSummary' },
);

const extras = object(
  {
    deduplicated: attribute(Type.Boolean(), 'True when the token existed before.'),
    deduplication_behavior: attribute(Type.Optional(text), 'What became of the existing token.'),
  },
  { title: 'TokenExtras' },
);

/** A token in responses. Attributes that are not listed here are dropped, whatever a handler returns. */
export const token = object(
  {
    id: attribute(text, 'Given at creation, or a UUID.'),
    tenant_id: Type.Optional(shared.tenant_id),
    type: attribute(Type.Optional(text), 'One of the token types.'),
    data: attribute(Type.Optional(anyJson), 'The value, as far as the caller may see it.'),
    card: attribute(Type.Optional(cardSummary), 'What a card shows in the clear.'),
    bank: attribute(Type.Optional(bankSummary), 'What a bank account shows in the clear.'),
    network_token: attribute(
      Type.Optional(cardSummary),
      'What a network token shows in the clear.',
    ),
    mask: attribute(
      Type.Optional(anyJson),
      'Any JSON in which strings are expressions over `data`. It decides what `mask` shows.',
    ),
    fingerprint: attribute(
      Type.Optional(text),
      'Equal for tokens with equal values, and says nothing else about the value.',
    ),
    fingerprint_expression: attribute(
      Type.Optional(text),
      'The expression whose value makes two tokens equal.',
    ),
    containers: attribute(
      Type.Optional(Type.Array(text)),
      'The container of the token, as a list of one.',
    ),
    metadata: attribute(
      Type.Optional(textMap),
      'Texts by name that are not sensitive: they are neither encrypted like data nor masked.',
    ),
    search_indexes: attribute(
      Type.Optional(Type.Array(text)),
      'Expressions; the token is found by the value of each.',
    ),
    expires_at: attribute(
      Type.Optional(timestamp),
      'From when on the token is gone for every reader.',
    ),
    created_by: Type.Optional(shared.created_by),
    created_at: Type.Optional(shared.created_at),
    modified_by: shared.modified_by,
    modified_at: shared.modified_at,
    _extras: attribute(Type.Optional(extras), 'About the creation itself.'),
  },
  {
    title: 'Token',
    description:
      'A token. The transform of the access rule that applies decides how its data is shown.',
  },
);

/** The attributes that a request to create and a request to update share. */
const containers = nullable(documented(Type.Array(container), { maxItems: 1 }));
const metadataLimits = {
  maxProperties: metadataKeysMax,
  propertyNames: { minLength: 1, maxLength: metadataKeyLengthMax },
};
const settings = {
  search_indexes: attribute(
    nullable(documented(Type.Array(text), { maxItems: searchIndexesMax })),
    token.properties.search_indexes,
  ),
  fingerprint_expression: attribute(nullable(text), token.properties.fingerprint_expression),
};
/** Still sent by old clients; it has had no effect since containers took its place. */
const privacy = attribute(
  Type.Optional(anyJson),
  'Accepted and ignored: containers took its place.',
);

const tokenRequestAttributes = {
  id: attribute(
    nullable(text),
    'A text of 1 to 400 characters, or an expression over `data`; a UUID unless given.',
  ),
  token_intent_id: attribute(
    nullable(text),
    'The token intent that becomes the token, in the place of `type` and `data`.',
  ),
  type: attribute(nullable(text), token.properties.type),
  data: attribute(Type.Optional(anyJson), 'The value; its form depends on the type.'),
  encrypted: attribute(
    nullable(text),
    'A compact JWE for an encryption key of the tenant, in the place of `data`.',
  ),
  mask: attribute(
    Type.Optional(anyJson),
    "Any JSON in which strings are expressions over `data`; the type's mask unless given.",
  ),
  containers: attribute(containers, "A list of one container; the type's container unless given."),
  metadata: attribute(nullable(documented(textMap, metadataLimits)), token.properties.metadata),
  ...settings,
  deduplicate_token: attribute(
    nullable(Type.Boolean()),
    'True to get the existing token with the same fingerprint, if there is one.',
  ),
  expires_at: attribute(
    nullable(text),
    'An ISO 8601 date-time, or month/day/year; never unless given.',
  ),
  privacy,
};

export const tokenPatch = object(
  {
    data: attribute(
      Type.Optional(anyJson),
      'A JSON merge patch of the data; other JSON than an object replaces it.',
    ),
    mask: attribute(Type.Optional(anyJson), 'A JSON merge patch of the mask.'),
    containers: attribute(containers, token.properties.containers),
    metadata: attribute(
      nullable(documented(textOrNullMap, metadataLimits)),
      'A JSON merge patch of the metadata; null removes a name.',
    ),
    ...settings,
    deduplicate_token: attribute(
      nullable(Type.Boolean()),
      'An update returns no other token. With true, the response has no contents where a token that the caller may ' +
        'not read has the same fingerprint.',
    ),
    expires_at: attribute(
      nullable(text),
      'An ISO 8601 date-time, or month/day/year; null for never.',
    ),
    privacy,
  },
  { ...strict, title: 'TokenPatch' },
);

export const cardExample = {
  number: '4242424242424242',
  expiration_month: 12,
  expiration_year: 2030,
  cvc: '123',
};

const cardNumber = {
  pattern: '^[0-9]{13,19}$',
  description: 'A card number without separators, of 13 to 19 digits, that passes the Luhn check.',
};
const accountNumber = {
  pattern: '^[0-9]{3,17}$',
  description: 'An account number of 3 to 17 digits.',
};
const routingNumber = {
  pattern: '^[0-9]{9}$',
  description: 'An ABA routing number: nine digits that pass its check.',
};
const nineDigits = { pattern: '^(?:-*[0-9]){9}-*$', maxLength: 20 };

/** A number, or a string that holds one. */
const number = (range: { readonly minimum: number; readonly maximum: number }, pattern: string) =>
  attribute(
    Type.Optional(Type.Union([Type.Integer(range), Type.String({ pattern }), Type.Null()])),
    'A number, also as text.',
  );

const card = (title: string, description: string) =>
  object(
    {
      number: attribute(Type.String(cardNumber), cardNumber.description),
      expiration_month: number({ minimum: 1, maximum: 12 }, '^(?:0{0,3}[1-9]|0{0,2}1[0-2])$'),
      expiration_year: number({ minimum: 2000, maximum: 2099 }, '^20[0-9]{2}$'),
      cvc: attribute(
        Type.Optional(Type.Union([Type.String({ pattern: '^[0-9]{3,4}$' }), Type.Null()])),
        'Deleted after the quota `cvc_retention`, one hour by default.',
      ),
    },
    { title, description, ...strict, examples: [cardExample] },
  );

/** The data of each type as the document shows it, each with an example, which a test stores. */
export const tokenData: Readonly<Record<TokenTypeName, TSchema>> = {
  token: Type.Unsafe({
    not: { type: 'null' },
    description: 'Any JSON.',
    examples: [{ passport: 'X1234567', issued: [2026, 1, 31] }],
  }),
  card: card('CardData', 'A card.'),
  network_token: card('NetworkTokenData', 'A network token, which has the form of a card.'),
  bank: object(
    {
      routing_number: attribute(Type.String(routingNumber), routingNumber.description),
      account_number: attribute(Type.String(accountNumber), accountNumber.description),
    },
    {
      title: 'BankData',
      description: 'A bank account in the United States.',
      ...strict,
      examples: [{ routing_number: '021000021', account_number: '00001' }],
    },
  ),
  card_number: Type.String({ ...cardNumber, examples: ['4242424242424242'] }),
  us_bank_account_number: Type.String({ ...accountNumber, examples: ['00001'] }),
  us_bank_routing_number: Type.String({ ...routingNumber, examples: ['021000021'] }),
  social_security_number: Type.String({
    ...nineDigits,
    description: 'Nine digits, with or without hyphens.',
    examples: ['078-05-1120'],
  }),
  employer_id_number: Type.String({
    ...nineDigits,
    description: 'Nine digits, with or without hyphens.',
    examples: ['12-3456789'],
  }),
};

export const tokenTypeNames = Object.keys(tokenTypes) as TokenTypeName[];

/** A request that leaves it to the type what data may be, as a union with a member for each type. */
function byType(
  noun: 'Token' | 'TokenIntent',
  { type, data }: Pick<typeof tokenRequestAttributes, 'type' | 'data'>,
  others: Attributes,
) {
  const names = tokenTypeNames.filter((name) => noun === 'Token' || name !== typeWithoutIntents);
  const members = names.map((name) =>
    object(
      {
        type: attribute(Type.Literal(name), type),
        data: attribute(tokenData[name], data),
        ...others,
      },
      {
        ...strict,
        title: `Create${pascal(name)}${noun}`,
        description: `For the type \`${name}\`.`,
      },
    ),
  );
  const mapping = members.map((member, at) => [
    names[at],
    `#/components/schemas/${titleOf(member)}`,
  ]);
  return {
    oneOf: members,
    discriminator: { propertyName: 'type', mapping: Object.fromEntries(mapping) },
  };
}

/** `card_number` as `CardNumber`. */
function pascal(name: string): string {
  return name.replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase());
}

const { type, data, token_intent_id, ...others } = tokenRequestAttributes;

const fromIntent = object(
  { token_intent_id: attribute(text, token_intent_id), ...others },
  { ...strict, title: 'ConvertTokenIntent', description: 'A token from a token intent.' },
);

export const tokenRequest = shownAs(
  object(tokenRequestAttributes, { ...strict, title: 'TokenRequest' }),
  { anyOf: [byType('Token', { type, data }, others), fromIntent] },
);

export const tokenIntentRequest = shownAs(
  object({ type, data, encrypted: others.encrypted }, { ...strict, title: 'TokenIntentRequest' }),
  byType('TokenIntent', { type, data }, {}),
);

const validateRequest = compileValidator(tokenRequest, 'body');
const validatePatch = compileValidator(tokenPatch, 'body');

/**
 * Reading requests about tokens where they are not the body itself but a part of it, or come from code.
 * Each throws VaultError `validation_failed` naming every attribute that is wrong.
 */
export const tokenReaders = {
  readRequest: (json: unknown) => required(validateRequest(json)) as TokenRequest,
  readPatch: (json: unknown) => required(validatePatch(json)) as TokenPatch,
};

function required(validated: ValidationResult): unknown {
  if ('error' in validated) throw validated.error;
  return validated.value;
}

/** The types of tokens: one row each, with the checks and the defaults they bring. */
import { type Container, parseContainer } from '../../base/container.ts';
import { invalid } from '../../base/errors.ts';
import type { Json, JsonObject } from '../../base/json.ts';
import {
  accountNumberForm,
  bankProperties,
  parseAccountNumber,
  parseBank,
  parseRoutingNumber,
  routingNumberForm,
  summaryOfBank,
} from './bank.ts';
import {
  cardNumberForm,
  cardProperties,
  parseCard,
  parseCardNumber,
  summaryOfCard,
} from './card.ts';

export interface TokenType {
  /** Where a token lives unless its creator says otherwise. */
  readonly container: Container;
  /** `undefined` for a type whose masked data is not valid data. */
  readonly mask: Json | undefined;
  /** The expression whose value makes two tokens of the type equal. */
  readonly fingerprint: string;
  readonly searchIndexes: readonly string[];
  /** All that its data may have, where that is an object of known properties. */
  readonly properties?: readonly string[];
  /** The property that is stored no longer than the CVC Retention quota; see `card-code.ts`. */
  readonly code?: string;
  /**
   * Gives the data as it is stored.
   *
   * @throws VaultError 400 naming every attribute that is wrong, and never a value.
   */
  readonly parseData: (data: Json) => Json;
  /** What a token shows about its data next to it; absent for types that show nothing. */
  readonly summary?: (data: Json) => Summary;
}

/** The parts of card or bank data that a token shows in the clear. */
export interface Summary {
  readonly card?: JsonObject;
  readonly bank?: JsonObject;
  readonly network_token?: JsonObject;
}

const lastFour = '{{ data | reveal_last: 4 }}';

const card = {
  container: container('/pci/high/'),
  mask: {
    number: '{{ data.number | reveal_last: 4 }}',
    expiration_month: '{{ data.expiration_month }}',
    expiration_year: '{{ data.expiration_year }}',
  },
  fingerprint: '{{ data.number }}',
  searchIndexes: [],
  properties: cardProperties,
  code: 'cvc',
  parseData: parseCard,
} as const;

/** A number of nine digits that people write with hyphens. */
const personalNumber = {
  container: container('/pii/high/'),
  mask: lastFour,
  fingerprint: "{{ data | remove: '-' }}",
  searchIndexes: ['{{ data }}', "{{ data | replace: '-' }}", '{{ data | last4 }}'],
} as const;

const digitsAndHyphensPattern = /^[0-9-]{9,20}$/;

/** Every type by name. */
export const tokenTypes = {
  token: {
    container: container('/general/high/'),
    mask: undefined,
    fingerprint: '{{ data | stringify }}',
    searchIndexes: [],
    parseData: (data) => data,
  },
  card: { ...card, summary: (data) => ({ card: summaryOfCard(data) }) },
  network_token: { ...card, summary: (data) => ({ network_token: summaryOfCard(data) }) },
  bank: {
    container: container('/bank/high/'),
    mask: {
      routing_number: '{{ data.routing_number }}',
      account_number: '{{ data.account_number | reveal_last: 4 }}',
    },
    fingerprint: '{{ data.account_number }}|{{ data.routing_number }}',
    searchIndexes: [],
    properties: bankProperties,
    parseData: parseBank,
    summary: (data) => ({ bank: summaryOfBank(data) }),
  },
  card_number: {
    container: container('/pci/high/'),
    mask: lastFour,
    fingerprint: '{{ data }}',
    searchIndexes: [],
    parseData: parsing(parseCardNumber, cardNumberForm),
    summary: (data) => ({ card: summaryOfCard(data) }),
  },
  us_bank_account_number: {
    container: container('/bank/high/'),
    mask: lastFour,
    fingerprint: '{{ data }}',
    searchIndexes: [],
    parseData: parsing(parseAccountNumber, accountNumberForm),
  },
  us_bank_routing_number: {
    container: container('/bank/low/'),
    mask: lastFour,
    fingerprint: '{{ data }}',
    searchIndexes: [],
    parseData: parsing(parseRoutingNumber, routingNumberForm),
  },
  social_security_number: {
    ...personalNumber,
    parseData: parsing(
      parseNineDigits,
      'must be a social security number: 9 digits, with or without "-"',
    ),
  },
  employer_id_number: {
    ...personalNumber,
    parseData: parsing(
      parseNineDigits,
      'must be an employer id number: 9 digits, with or without "-"',
    ),
  },
} as const satisfies Record<string, TokenType>;

export type TokenTypeName = keyof typeof tokenTypes;

export function parseTokenType(name: string): TokenTypeName | undefined {
  return Object.hasOwn(tokenTypes, name) ? (name as TokenTypeName) : undefined;
}

/** What a token of this type shows of its data in the clear; an empty object for most types. */
export function summaryOf(type: TokenTypeName, data: Json): Summary {
  const row: TokenType = tokenTypes[type];
  return row.summary?.(data) ?? {};
}

function parsing(parse: (data: Json) => string | undefined, form: string) {
  return (data: Json): string => {
    const parsed = parse(data);
    if (parsed === undefined) throw invalid('data', form);
    return parsed;
  };
}

function parseNineDigits(data: Json): string | undefined {
  if (typeof data !== 'string' || !digitsAndHyphensPattern.test(data)) return undefined;
  return data.replaceAll('-', '').length === 9 ? data : undefined;
}

function container(path: string): Container {
  const parsed = parseContainer(path);
  if (parsed === undefined) throw new TypeError('a default container must be a container');
  return parsed;
}

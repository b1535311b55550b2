/** The data of each type of token, as the description shows it. `values/token-types.ts` is what checks it. */
import Type, { type TSchema } from 'typebox';
import type { TokenTypeName } from '../../values/token-types.ts';
import { anyJson, nullable } from './shared.ts';

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

const example = {
  number: '4242424242424242',
  expiration_month: 12,
  expiration_year: 2030,
  cvc: '123',
};

/** A number, also as text. */
const number = (range: { readonly minimum: number; readonly maximum: number }, pattern: string) =>
  Type.Optional(
    Type.Union([Type.Integer(range), Type.String({ pattern }), Type.Null()], {
      description: `A number from ${range.minimum} to ${range.maximum}, also as text.`,
    }),
  );

const card = (title: string, description: string) =>
  Type.Object(
    {
      number: Type.String(cardNumber),
      expiration_month: number({ minimum: 1, maximum: 12 }, '^(?:0{0,3}[1-9]|0{0,2}1[0-2])$'),
      expiration_year: number({ minimum: 2000, maximum: 2099 }, '^20[0-9]{2}$'),
      cvc: nullable(
        Type.String({
          pattern: '^[0-9]{3,4}$',
          description: 'Deleted after the quota `cvc_retention`, one hour by default.',
        }),
      ),
    },
    { title, description, additionalProperties: false, examples: [example] },
  );

/** Each with an example, which a test stores. */
export const tokenData: Readonly<Record<TokenTypeName, TSchema>> = {
  token: Type.Unsafe({
    not: { type: 'null' },
    ...anyJson,
    description: 'Any JSON.',
    examples: [{ passport: 'X1234567', issued: [2026, 1, 31] }],
  }),
  card: card('CardData', 'A card.'),
  network_token: card('NetworkTokenData', 'A network token, which has the form of a card.'),
  bank: Type.Object(
    { routing_number: Type.String(routingNumber), account_number: Type.String(accountNumber) },
    {
      title: 'BankData',
      description: 'A bank account in the United States.',
      additionalProperties: false,
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

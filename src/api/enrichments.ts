/** Enrichments: what is known about a bank account or a card. */
import Type from 'typebox';
import { type CardReading, readCardDetails } from '../tokens/enrichments/card-details.ts';
import {
  type BankVerifying,
  verifyBankAccount,
} from '../tokens/enrichments/verify-bank-account.ts';
import { operation, type Resource } from './declaration/operation.ts';
import { attribute, documented, object } from './declaration/shape.ts';
import { line, nullable, strict, text } from './shapes.ts';

const country = 'Two letters of ISO 3166';

const bankVerificationRequest = object(
  {
    token_id: attribute(line({ minLength: 1, maxLength: 400 }), 'The token.'),
    country_code: attribute(
      nullable(documented(line({ maxLength: 2 }), { pattern: '^[Uu][Ss]$' })),
      `${country}; \`US\` unless given.`,
    ),
    routing_number: attribute(nullable(line({ maxLength: 9 })), 'An ABA routing number.'),
  },
  { ...strict, title: 'BankVerificationRequest' },
);

const bankVerification = object(
  {
    status: attribute(
      Type.Enum(['enabled', 'disabled', 'inconclusive']),
      '`enabled`: it can receive transfers. `disabled`: transfers will fail. `inconclusive`: not known.',
    ),
  },
  { title: 'BankVerification' },
);

const cardDetailsQuery = object(
  {
    bin: attribute(
      documented(text, { pattern: '^[0-9]{6,8}$' }),
      'The first 6 to 8 digits of a card number, never more.',
    ),
  },
  strict,
);

const known = Type.Union([text, Type.Null()]);

const issuer = object(
  {
    country: attribute(known, `${country}.`),
    name: attribute(known, 'The name of the bank.'),
  },
  { title: 'CardIssuer' },
);

const binRange = object(
  {
    bin_min: attribute(text, 'The first number of the range.'),
    bin_max: attribute(text, 'The last number of the range.'),
  },
  { title: 'BinRange' },
);

const network = object(
  {
    brand: attribute(known, 'The network of the card.'),
    funding: attribute(known, 'Credit, debit or prepaid.'),
    segment: attribute(known, 'Consumer or commercial.'),
    issuer: attribute(issuer, 'The bank that issued it.'),
    bin_range: attribute(Type.Array(binRange), 'The ranges of numbers that belong to it.'),
  },
  { title: 'CardNetwork' },
);

const cardDetails = object(
  {
    ...network.properties,
    additional: attribute(Type.Array(network), 'Other networks of the same card.'),
  },
  { title: 'CardDetails' },
);

export const enrichments: Resource<BankVerifying & CardReading> = {
  tag: 'Enrichments',
  description: 'What is known about a bank account or a card.',
  operations: (tools) => [
    operation({
      id: 'verifyBankAccount',
      method: 'POST',
      path: '/enrichments/bank-account-verify',
      summary: 'Verify that a bank account can receive ACH transfers',
      description: 'The token is of the type `bank` or `us_bank_account_number`.',
      permission: 'token:use',
      body: bankVerificationRequest,
      reply: { status: 200, body: bankVerification },
      problems: ['not_found'],
      example: {
        body: { token_id: 'example-bank', country_code: 'US' },
        reply: { status: 'enabled' },
      },
      handle: ({ caller, body }) => verifyBankAccount(tools, caller, body),
    }),
    operation({
      id: 'getCardDetails',
      method: 'GET',
      path: '/enrichments/card-details',
      summary: 'Read the details of the cards of a BIN',
      permission: 'any key',
      query: cardDetailsQuery,
      reply: { status: 200, body: cardDetails },
      example: { query: { bin: '42424242' }, reply: { brand: 'visa' } },
      handle: ({ caller, query }) => readCardDetails(tools, caller, query.bin),
    }),
  ],
};

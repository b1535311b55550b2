/** Shapes of enrichments: what is known about a bank account or a card. */
import Type from 'typebox';
import { line, nullable, strict, text } from './shared.ts';

export const bankVerificationRequest = Type.Object(
  {
    token_id: line({ minLength: 1, maxLength: 400 }),
    country_code: nullable(line({ maxLength: 2 })),
    routing_number: nullable(line({ maxLength: 9 })),
  },
  { ...strict, title: 'BankVerificationRequest' },
);

export const bankVerification = Type.Object(
  { status: Type.Enum(['enabled', 'disabled', 'inconclusive']) },
  { title: 'BankVerification' },
);

export const cardDetailsQuery = Type.Object(
  { bin: Type.String({ description: 'The first 6 to 8 digits of a card number, never more.' }) },
  strict,
);

const known = Type.Union([text, Type.Null()]);

const network = Type.Object(
  {
    brand: known,
    funding: known,
    segment: known,
    issuer: Type.Object({ country: known, name: known }, { title: 'CardIssuer' }),
    bin_range: Type.Array(Type.Object({ bin_min: text, bin_max: text }, { title: 'BinRange' })),
  },
  { title: 'CardNetwork' },
);

export const cardDetails = Type.Object(
  { ...network.properties, additional: Type.Array(network) },
  { title: 'CardDetails' },
);

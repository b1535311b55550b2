/** Routes of enrichments. */
import { type CardReading, readCardDetails } from '../../vault/enrichments/card-details.ts';
import {
  type BankVerifying,
  verifyBankAccount,
} from '../../vault/enrichments/verify-bank-account.ts';
import { type Route, route } from '../protocol/route.ts';
import {
  bankVerification,
  bankVerificationRequest,
  cardDetails,
  cardDetailsQuery,
} from '../schemas/enrichment.ts';

export function enrichmentRoutes(tools: BankVerifying & CardReading): Route[] {
  return [
    route({
      method: 'POST',
      path: '/enrichments/bank-account-verify',
      summary: 'Verify that a bank account can receive ACH transfers',
      permission: 'token:use',
      body: bankVerificationRequest,
      reply: { status: 200, body: bankVerification },
      handle: ({ caller, body }) => verifyBankAccount(tools, caller, body),
    }),
    route({
      method: 'GET',
      path: '/enrichments/card-details',
      summary: 'Read the details of the cards of a BIN',
      permission: 'any key',
      query: cardDetailsQuery,
      reply: { status: 200, body: cardDetails },
      handle: ({ caller, query }) => readCardDetails(tools, caller, query.bin),
    }),
  ];
}

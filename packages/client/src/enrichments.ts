/** What is known about a bank account or a card. */
import type { RequestOptions } from './connection.ts';
import { Resource } from './resource.ts';
import type { BankVerification, BankVerificationRequest, CardDetails } from './wire.ts';

/**
 * Enrichments, as `vault.enrichments`.
 *
 * @example
 * ```ts
 * const { brand } = await vault.enrichments.cardDetails('42424242');
 * ```
 */
export class Enrichments extends Resource {
  /**
   * Verifies that a bank account can receive ACH transfers.
   *
   * @example
   * ```ts
   * const bank = await vault.tokens.create({
   *   type: 'bank',
   *   data: { routing_number: '021000021', account_number: '00001' },
   * });
   * const { status } = await vault.enrichments.verifyBankAccount({ token_id: bank.id });
   * ```
   */
  verifyBankAccount(
    request: BankVerificationRequest,
    options?: RequestOptions,
  ): Promise<BankVerification> {
    return this.call('verifyBankAccount', { body: request }, options);
  }

  /**
   * The details of the cards of a BIN: the first 6 to 8 digits of a number, never more.
   *
   * @example
   * ```ts
   * const { brand, funding } = await vault.enrichments.cardDetails('42424242');
   * ```
   */
  cardDetails(bin: string, options?: RequestOptions): Promise<CardDetails> {
    return this.call('getCardDetails', { query: { bin } }, options);
  }
}

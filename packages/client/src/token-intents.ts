/** Token intents: validated data that is not yet a token. */
import type { RequestOptions } from './connection.ts';
import { Resource } from './resource.ts';
import type { TokenIntent, TokenIntentRequest } from './wire.ts';

/**
 * Token intents, as `vault.tokenIntents`: a page collects data, and its server decides whether it becomes a token.
 *
 * @example
 * ```ts
 * const intent = await vault.tokenIntents.create({ type: 'card_number', data: '4242424242424242' });
 * const token = await vault.tokens.create({ token_intent_id: intent.id });
 * ```
 */
export class TokenIntents extends Resource {
  /**
   * Stores validated data that can become a token.
   *
   * @example
   * ```ts
   * const intent = await vault.tokenIntents.create({ type: 'card_number', data: '4242424242424242' });
   * ```
   */
  create(request: TokenIntentRequest, options?: RequestOptions): Promise<TokenIntent> {
    return this.call('createTokenIntent', { body: request }, options);
  }

  /**
   * Reads a token intent, without its data.
   *
   * @example
   * ```ts
   * const { id } = await vault.tokenIntents.create({ type: 'card_number', data: '4242424242424242' });
   * const { card } = await vault.tokenIntents.get(id);
   * ```
   */
  get(id: string, options?: RequestOptions): Promise<TokenIntent> {
    return this.call('getTokenIntent', { params: { id } }, options);
  }

  /**
   * Deletes a token intent, with its data.
   *
   * @example
   * ```ts
   * const { id } = await vault.tokenIntents.create({ type: 'card_number', data: '4242424242424242' });
   * await vault.tokenIntents.delete(id);
   * ```
   */
  delete(id: string, options?: RequestOptions): Promise<void> {
    return this.call('deleteTokenIntent', { params: { id } }, options);
  }
}

/** Tokens: one by one, as lists, and in any number. */
import type { RequestOptions } from './connection.ts';
import { type ExportOptions, exportTokens } from './export.ts';
import { type ImportOptions, type ImportResult, importTokens } from './import.ts';
import type { List } from './list.ts';
import { Resource } from './resource.ts';
import type {
  ErasureReceipt,
  ExportTokensQuery,
  ListTokensQuery,
  Token,
  TokenPatch,
  TokenRequest,
  TokenSearch,
} from './wire.ts';

/**
 * Tokens, as `vault.tokens`.
 *
 * @example
 * ```ts
 * const token = await vault.tokens.create({ type: 'token', data: 'Ada Lovelace' });
 * const { data } = await vault.tokens.get(token.id);
 * ```
 */
export class Tokens extends Resource {
  /**
   * Stores a value and gives the token that stands for it. Without an `idempotencyKey` the call has one of its own, so
   * that its retries create one token.
   *
   * @throws ValidationError for data that its type does not allow, ConflictError for an id that is taken.
   * @example
   * ```ts
   * const token = await vault.tokens.create({
   *   type: 'card',
   *   data: { number: '4242424242424242', expiration_month: 12, expiration_year: 2030, cvc: '123' },
   *   metadata: { order: '4711' },
   * });
   * console.log(token.id, token.card?.brand); // … visa
   * ```
   */
  create<Data = unknown>(request: TokenRequest, options?: RequestOptions): Promise<Token<Data>> {
    return this.call('createToken', { body: request }, options) as Promise<Token<Data>>;
  }

  /**
   * Reads a token. Its `data` is what the access rules of the key show: the value, what the mask leaves, or nothing.
   *
   * @throws NotFoundError where there is none with this id, or it has expired.
   * @example
   * ```ts
   * import type { CardData } from '@strongroom/client';
   *
   * const token = await vault.tokens.get<CardData>('order-4711-card');
   * const { number } = token.data ?? {};
   * console.log(token); // shows data as [hidden]
   * ```
   */
  get<Data = unknown>(id: string, options?: RequestOptions): Promise<Token<Data>> {
    return this.call('getToken', { params: { id } }, options) as Promise<Token<Data>>;
  }

  /**
   * Changes a token by JSON merge patch: members that are absent stay, and null removes.
   *
   * @throws NotFoundError where there is none with this id.
   * @example
   * ```ts
   * await vault.tokens.update('order-4711-card', {
   *   data: { expiration_year: 2031 },
   *   metadata: { order: '4712', cart: null },
   * });
   * ```
   */
  update<Data = unknown>(
    id: string,
    patch: TokenPatch,
    options?: RequestOptions,
  ): Promise<Token<Data>> {
    const input = { params: { id }, body: patch };
    return this.call('updateToken', input, options) as Promise<Token<Data>>;
  }

  /**
   * Deletes a token, with its value.
   *
   * @throws NotFoundError where there is none with this id.
   * @example
   * ```ts
   * await vault.tokens.delete('order-4711-card');
   * ```
   */
  delete(id: string, options?: RequestOptions): Promise<void> {
    return this.call('deleteToken', { params: { id } }, options);
  }

  /**
   * The tokens that the key may read, newest first. Each has its entry in the audit log when its page is read.
   *
   * @example
   * ```ts
   * for await (const token of vault.tokens.list({ type: 'card', metadata: { order: '4711' } })) {
   *   console.log(token.id);
   * }
   * ```
   */
  list<Data = unknown>(query: ListTokensQuery = {}, options?: RequestOptions): List<Token<Data>> {
    return this.pagesOf('listTokens', { query }, options) as List<Token<Data>>;
  }

  /**
   * The tokens that a query finds, newest first: `data:<value>` of a search index, or `metadata.<name>:<value>`, joined
   * by ` AND `.
   *
   * @example
   * ```ts
   * for await (const token of vault.tokens.search('metadata.order:4711')) {
   *   console.log(token.id);
   * }
   * const [first] = await vault.tokens.search({ query: 'data:4242', size: 1 }).toArray(1);
   * ```
   */
  search<Data = unknown>(query: string | TokenSearch, options?: RequestOptions): List<Token<Data>> {
    const body = typeof query === 'string' ? { query } : query;
    return this.pagesOf('searchTokens', { body }, options, 'body') as List<Token<Data>>;
  }

  /**
   * Creates any number of tokens, from an array, a generator or a stream of requests. It sends them in parts, and the
   * next part once you have read the results of the one before: neither side ever holds more than that. A line that
   * fails does not stop the others. A request without an `id` gets a random one, so that a part whose connection
   * breaks can be sent again without a second effect.
   *
   * @throws StreamError where it ends early; `done` is how many requests have a result.
   * @example
   * ```ts
   * import type { Progress } from '@strongroom/client';
   *
   * async function* requests() {
   *   for (let n = 0; n < 1000; n++) yield { type: 'token', data: `value ${n}` } as const;
   * }
   * const onProgress = ({ done, failed }: Progress) => console.log(done, failed);
   * for await (const result of vault.tokens.import(requests(), { onProgress })) {
   *   if (result.problem) console.log(result.line, result.problem.errors);
   * }
   * ```
   */
  import(
    requests: AsyncIterable<TokenRequest> | Iterable<TokenRequest>,
    options?: ImportOptions,
  ): AsyncGenerator<ImportResult, void, undefined> {
    return importTokens(this.connection, requests, options);
  }

  /**
   * Every token that the key may read, newest first, over one connection. Tokens that you have not read wait in the
   * vault, and `break` ends it.
   *
   * @throws StreamError where it ends before all tokens came.
   * @example
   * ```ts
   * import type { Progress } from '@strongroom/client';
   *
   * const onProgress = ({ done }: Progress) => console.log(`${done} tokens`);
   * for await (const token of vault.tokens.export({ container: '/pci/' }, { onProgress })) {
   *   console.log(JSON.stringify(token));
   * }
   * ```
   */
  export<Data = unknown>(
    query: ExportTokensQuery = {},
    options?: ExportOptions,
  ): AsyncGenerator<Token<Data>, void, undefined> {
    return exportTokens<Data>(this.connection, query, options);
  }

  /**
   * A signed receipt that a token was deleted or has expired. `verifyErasureReceipt` of `@strongroom/client/verify`
   * verifies it without a vault.
   *
   * @throws NotFoundError for a token that exists, or never did.
   * @example
   * ```ts
   * await vault.tokens.delete('order-4711-card');
   * const receipt = await vault.tokens.erasure('order-4711-card');
   * console.log(receipt.erased_at);
   * ```
   */
  erasure(id: string, options?: RequestOptions): Promise<ErasureReceipt> {
    return this.call('getTokenErasure', { params: { id } }, options);
  }
}

/** The tables of tokens, of the search terms that find them, and of token intents. */
import type { Instant } from '../base/clock.ts';
import type { Container } from '../base/container.ts';
import type { ApplicationId, ClientKeyId, TokenId, TokenIntentId } from '../base/ids.ts';
import { bytes, digest, id, integer, optional, type TableSpec, tenant, text } from './columns.ts';

export const tokenTables = {
  tokens: {
    key: ['tenant_id', 'token_id'],
    unique: { fingerprint: ['tenant_id', 'fingerprint', 'fingerprint_expression'] },
    columns: {
      tenant_id: tenant(),
      token_id: id<TokenId>(),
      version: integer(),
      type: text(),
      container: text<Container>(),
      /** Sealed JSON text. It opens only while all other columns are as they were when it was sealed. */
      data: bytes(),
      /** JSON, where `null` means no mask; SQL's null means the mask of the token's type. */
      mask: optional(text()),
      /** JSON object of strings. */
      metadata: optional(text()),
      fingerprint: optional(text()),
      /** Null where the expression is that of the token's type. */
      fingerprint_expression: optional(text()),
      /** 1 if the token represents its fingerprint under its expression: no second such token may exist. */
      deduplicated: integer<0 | 1>(),
      /** JSON array of expressions; their values are in `search_terms`. */
      search_indexes: optional(text()),
      expires_at: optional(integer<Instant>()),
      /** Minutes east of UTC in which the caller wrote the expiry. */
      expires_offset: optional(integer()),
      /** From then on the card code in `data` is gone; null where there is none. */
      code_expires_at: optional(integer<Instant>()),
      created_by: id<ApplicationId>(),
      created_at: integer<Instant>(),
      modified_by: optional(id<ApplicationId>()),
      modified_at: optional(integer<Instant>()),
    },
  },
  search_terms: {
    key: ['tenant_id', 'term', 'created_at', 'token_id'],
    unique: {},
    owner: 'tokens',
    columns: {
      tenant_id: tenant(),
      token_id: id<TokenId>(),
      /** base64url of the keyed digest of the value. */
      term: digest(),
      /** The token's, so that a search finds its page in the order of lists. */
      created_at: integer<Instant>(),
      /** These as well, so that what is found is counted and chosen without a look at the tokens. */
      container: text<Container>(),
      type: text(),
      expires_at: optional(integer<Instant>()),
    },
  },
  /** Values that wait to be converted into tokens. */
  token_intents: {
    key: ['tenant_id', 'token_intent_id'],
    unique: {},
    columns: {
      tenant_id: tenant(),
      token_intent_id: id<TokenIntentId>(),
      version: integer(),
      type: text(),
      /** Sealed JSON text, bound to all other columns. */
      data: bytes(),
      /** Empty where it is withheld. */
      fingerprint: text(),
      /** From then on the card code in `data` is gone; null where there is none. */
      code_expires_at: optional(integer<Instant>()),
      created_by: id<ApplicationId>(),
      created_at: integer<Instant>(),
      expires_at: integer<Instant>(),
      /** For which its data was encrypted by a client; null where its caller brought the data in the clear. */
      client_key_id: optional(id<ClientKeyId>()),
      /** JSON array of the types that were recognized in the data; null where none was. */
      recognized: optional(text()),
    },
  },
} as const satisfies Record<string, TableSpec>;

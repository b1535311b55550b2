/** Shapes of tokens. */
import Type from 'typebox';
import {
  anyJson,
  nullable,
  strict,
  text,
  textMap,
  textOrNullMap,
  timestamp,
  uuid,
} from './shared.ts';

const cardDetails = Type.Object(
  {
    bin: Type.Optional(text),
    last4: Type.Optional(text),
    expiration_month: Type.Optional(Type.Integer()),
    expiration_year: Type.Optional(Type.Integer()),
    brand: Type.Optional(text),
  },
  { title: 'CardSummary' },
);

/** A token as it leaves. What is not listed here is dropped, whatever a handler gave. */
export const token = Type.Object(
  {
    id: text,
    tenant_id: Type.Optional(uuid),
    type: Type.Optional(text),
    data: Type.Optional(anyJson),
    card: Type.Optional(cardDetails),
    bank: Type.Optional(
      Type.Object(
        {
          routing_number: Type.Optional(text),
          account_number_last4: Type.Optional(text),
        },
        { title: 'BankSummary' },
      ),
    ),
    network_token: Type.Optional(cardDetails),
    mask: Type.Optional(anyJson),
    fingerprint: Type.Optional(text),
    fingerprint_expression: Type.Optional(text),
    containers: Type.Optional(Type.Array(text)),
    metadata: Type.Optional(textMap),
    search_indexes: Type.Optional(Type.Array(text)),
    expires_at: Type.Optional(timestamp),
    created_by: Type.Optional(uuid),
    created_at: Type.Optional(timestamp),
    modified_by: Type.Optional(uuid),
    modified_at: Type.Optional(timestamp),
    _extras: Type.Optional(
      Type.Object(
        {
          deduplicated: Type.Boolean(),
          deduplication_behavior: Type.Optional(text),
        },
        { title: 'TokenExtras' },
      ),
    ),
  },
  {
    title: 'Token',
    description:
      'A token. The transform of the access rule that applies decides how its data is shown.',
  },
);

/** Still sent by old clients; it has had no effect since containers took its place. */
const privacy = Type.Optional(anyJson);

export const tokenRequest = Type.Object(
  {
    id: nullable(text),
    token_intent_id: nullable(text),
    type: nullable(text),
    data: Type.Optional(anyJson),
    encrypted: nullable(text),
    mask: Type.Optional(anyJson),
    containers: nullable(Type.Array(text)),
    metadata: nullable(textMap),
    search_indexes: nullable(Type.Array(text)),
    fingerprint_expression: nullable(text),
    deduplicate_token: nullable(Type.Boolean()),
    expires_at: nullable(text),
    privacy,
  },
  { ...strict, title: 'TokenRequest' },
);

export const tokenPatch = Type.Object(
  {
    data: Type.Optional(anyJson),
    mask: Type.Optional(anyJson),
    containers: nullable(Type.Array(text)),
    metadata: nullable(textOrNullMap),
    search_indexes: nullable(Type.Array(text)),
    fingerprint_expression: nullable(text),
    deduplicate_token: nullable(Type.Boolean()),
    expires_at: nullable(text),
    privacy,
  },
  { ...strict, title: 'TokenPatch' },
);

/** Shapes of token intents. */
import Type from 'typebox';
import { anyJson, nullable, strict, text, timestamp, uuid } from './shared.ts';
import { token } from './token.ts';

const { card, bank } = token.properties;

/** A token intent as it leaves: never with its data. */
export const tokenIntent = Type.Object(
  {
    id: uuid,
    tenant_id: uuid,
    type: text,
    card,
    bank,
    fingerprint: Type.Optional(text),
    created_by: uuid,
    created_at: timestamp,
    expires_at: timestamp,
  },
  { title: 'TokenIntent' },
);

export const tokenIntentRequest = Type.Object(
  { type: nullable(text), data: Type.Optional(anyJson), encrypted: nullable(text) },
  { ...strict, title: 'TokenIntentRequest' },
);

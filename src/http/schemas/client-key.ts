/** Shapes of the keys by which clients encrypt. */
import Type from 'typebox';
import { clientKeyAlgorithms } from '../../crypto/client-key.ts';
import { nullable, strict, text, timestamp, uuid } from './shared.ts';

export const clientKeyRequest = Type.Object(
  {
    expires_at: nullable(text),
    algorithm: nullable(Type.Enum([...clientKeyAlgorithms])),
  },
  { ...strict, title: 'EncryptionKeyRequest' },
);

export const clientKey = Type.Object(
  {
    id: uuid,
    key_id: uuid,
    public_key_pem: Type.Optional(text),
    expires_at: timestamp,
    created_by: uuid,
    created_at: timestamp,
  },
  {
    title: 'EncryptionKey',
    description:
      'A key by which clients encrypt for the vault. Only the response to its creation has the public key.',
  },
);

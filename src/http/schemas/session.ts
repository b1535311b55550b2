/** Shapes of sessions. */
import Type from 'typebox';
import { accessRequest } from './application.ts';
import { nullable, strict, text, timestamp } from './shared.ts';

export const session = Type.Object(
  { session_key: text, nonce: text, expires_at: timestamp },
  {
    title: 'Session',
    description:
      'A new session. Its key may do nothing until a private application has authorized the nonce.',
  },
);

export const sessionAuthorization = Type.Object(
  { nonce: text, ...accessRequest, expires_at: nullable(text) },
  { ...strict, title: 'SessionAuthorization' },
);

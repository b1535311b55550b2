/** Shapes of sessions. */
import Type from 'typebox';
import { accessRequest, accessRules } from './application.ts';
import { nullable, offsetPage, pageQuery, strict, text, timestamp, uuid } from './shared.ts';

export const session = Type.Object(
  { session_key: text, nonce: text, expires_at: timestamp },
  {
    title: 'Session',
    description:
      'A new session. Its key may do nothing until a private application has authorized the nonce.',
  },
);

const liveSession = Type.Object(
  {
    id: uuid,
    tenant_id: uuid,
    application_id: uuid,
    created_by_key: Type.Optional(uuid),
    authorized_by: Type.Optional(uuid),
    authorized_by_key: Type.Optional(uuid),
    permissions: Type.Array(text),
    rules: accessRules,
    created_at: timestamp,
    authorized_at: Type.Optional(timestamp),
    expires_at: timestamp,
  },
  {
    title: 'LiveSession',
    description: 'A session as administrators see it: without its key and its nonce.',
  },
);

export const liveSessionPage = offsetPage(liveSession);

export const sessionQuery = Type.Object({ ...pageQuery }, strict);

export const sessionAuthorization = Type.Object(
  { nonce: text, ...accessRequest, expires_at: nullable(text) },
  { ...strict, title: 'SessionAuthorization' },
);

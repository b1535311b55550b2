/** Sessions: keys for some minutes, which a page creates and a server authorizes. */
import Type from 'typebox';
import type { KeyWriting } from '../access/applications/keys.ts';
import { authorizeSession } from '../access/sessions/authorize.ts';
import { createSession } from '../access/sessions/create.ts';
import { deleteSession, listSessions, type SessionListing } from '../access/sessions/live.ts';
import { access, accessRequest } from './access.ts';
import { idOf, operation, type Resource } from './declaration/operation.ts';
import { attribute, object } from './declaration/shape.ts';
import {
  byId,
  nullable,
  offsetPage,
  pageQuery,
  shared,
  strict,
  text,
  timestamp,
  uuid,
} from './shapes.ts';

const { id, tenant_id, created_at, expires_at } = shared;

const nonce = attribute(text, 'Authorizes the session, once.');

const session = object(
  {
    session_key: attribute(text, 'Used like any key, once the session is authorized.'),
    nonce,
    expires_at,
  },
  {
    title: 'Session',
    description:
      'A new session. Its key may do nothing until a private application has authorized the nonce.',
  },
);

const liveSession = object(
  {
    id,
    tenant_id,
    application_id: attribute(uuid, 'The public application that created it.'),
    created_by_key: attribute(Type.Optional(uuid), 'The id of the key that created it.'),
    authorized_by: attribute(
      Type.Optional(uuid),
      'The private application that authorized it; absent until then.',
    ),
    authorized_by_key: attribute(Type.Optional(uuid), 'The id of the key that authorized it.'),
    ...access,
    created_at,
    authorized_at: attribute(Type.Optional(timestamp), 'When it was authorized.'),
    expires_at,
  },
  {
    title: 'LiveSession',
    description: 'A session as administrators see it: without its key and its nonce.',
  },
);

const sessionAuthorization = object(
  {
    nonce,
    ...accessRequest,
    expires_at: attribute(
      nullable(text),
      'At most 24 hours ahead; 3 minutes after the creation unless given.',
    ),
  },
  { ...strict, title: 'SessionAuthorization' },
);

const exampleNonce = 'Nonce0000000000000000000000000000';

export const sessions: Resource<KeyWriting & SessionListing> = {
  tag: 'Sessions',
  description:
    'How a page or an app shows a value for some minutes: it creates a session with its public key, and its server ' +
    'authorizes the nonce with a private key.',
  operations: (tools) => [
    operation({
      id: 'createSession',
      method: 'POST',
      path: '/sessions',
      summary: 'Create a session, which may do nothing yet',
      permission: 'any key',
      kinds: ['public'],
      reply: { status: 201, body: session },
      example: {
        reply: {
          session_key: 'key_test_ses_…',
          nonce: exampleNonce,
          expires_at: '2026-01-31T09:33:00.000+00:00',
        },
      },
      handle: ({ caller }) => createSession(tools, caller),
    }),
    operation({
      id: 'listSessions',
      method: 'GET',
      path: '/sessions',
      summary: 'List active sessions, newest first',
      description:
        'Lists sessions that have not expired, and whose creating and authorizing keys still exist.',
      permission: 'session:read',
      query: object(pageQuery, strict),
      reply: { status: 200, body: offsetPage(liveSession) },
      example: {
        reply: {
          pagination: { total_items: 1 },
          data: [
            {
              id: idOf(10),
              application_id: idOf(11),
              created_by_key: idOf(12),
              permissions: [],
              rules: [],
            },
          ],
        },
      },
      handle: ({ caller, query }) => listSessions(tools, caller, query),
    }),
    operation({
      id: 'authorizeSession',
      method: 'POST',
      path: '/sessions/authorize',
      summary: 'Give a session permissions or rules, once',
      description: 'A nonce can be used once. Give `permissions`, `rules`, or both.',
      permission: 'any key',
      kinds: ['private'],
      body: sessionAuthorization,
      reply: { status: 200 },
      problems: ['not_found'],
      example: {
        body: {
          nonce: exampleNonce,
          rules: [
            { priority: 1, container: '/pci/', permissions: ['token:read'], transform: 'mask' },
          ],
        },
      },
      handle: ({ caller, body }) => authorizeSession(tools, caller, body),
    }),
    operation({
      id: 'deleteSession',
      method: 'DELETE',
      path: '/sessions/:id',
      summary: 'End a session',
      description: 'Its key is refused with 401 from then on, on every server within a second.',
      permission: 'session:delete',
      params: byId,
      reply: { status: 204 },
      example: { params: { id: idOf(10) } },
      handle: ({ caller, params }) => deleteSession(tools, caller, params.id),
    }),
  ],
};

/** Routes of sessions. */
import type { KeyWriting } from '../../vault/applications/keys.ts';
import { authorizeSession } from '../../vault/sessions/authorize.ts';
import { createSession } from '../../vault/sessions/create.ts';
import { deleteSession, listSessions, type SessionListing } from '../../vault/sessions/live.ts';
import { type Route, route } from '../protocol/route.ts';
import {
  liveSessionPage,
  session,
  sessionAuthorization,
  sessionQuery,
} from '../schemas/session.ts';
import { byId } from '../schemas/shared.ts';

export function sessionRoutes(tools: KeyWriting & SessionListing): Route[] {
  return [
    route({
      method: 'POST',
      path: '/sessions',
      summary: 'Create a session, which may do nothing yet',
      permission: 'any key',
      kinds: ['public'],
      reply: { status: 201, body: session },
      handle: ({ caller }) => createSession(tools, caller),
    }),
    route({
      method: 'GET',
      path: '/sessions',
      summary: 'List the sessions that are alive, newest first',
      permission: 'session:read',
      query: sessionQuery,
      reply: { status: 200, body: liveSessionPage },
      handle: ({ caller, query }) => listSessions(tools, caller, query),
    }),
    route({
      method: 'DELETE',
      path: '/sessions/:id',
      summary: 'End a session',
      permission: 'session:delete',
      params: byId,
      reply: { status: 204 },
      handle: ({ caller, params }) => deleteSession(tools, caller, params.id),
    }),
    route({
      method: 'POST',
      path: '/sessions/authorize',
      summary: 'Give a session permissions or rules, once',
      permission: 'any key',
      kinds: ['private'],
      body: sessionAuthorization,
      reply: { status: 200 },
      handle: ({ caller, body }) => authorizeSession(tools, caller, body),
    }),
  ];
}

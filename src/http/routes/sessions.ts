/** Routes of sessions. */
import type { KeyWriting } from '../../vault/applications/keys.ts';
import { authorizeSession } from '../../vault/sessions/authorize.ts';
import { createSession } from '../../vault/sessions/create.ts';
import { type Route, route } from '../protocol/route.ts';
import { session, sessionAuthorization } from '../schemas/session.ts';

export function sessionRoutes(tools: KeyWriting): Route[] {
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

/** Routes by which reactors are called, and what came of it is read. */
import { callReactor, type ReactorCalling } from '../../vault/reactor-calls/react.ts';
import { readReactorLogs, readResult } from '../../vault/reactor-calls/read-result.ts';
import { type Route, route } from '../protocol/route.ts';
import {
  asyncReactResponse,
  byRequestId,
  reactorLogs,
  reactorLogsQuery,
  reactRequest,
  reactResponse,
} from '../schemas/reactor.ts';
import { byId } from '../schemas/shared.ts';

const invoking = { permission: 'reactor:invoke', alternative: 'token:use' } as const;

export function reactorCallRoutes(tools: ReactorCalling): Route[] {
  return [
    route({
      method: 'POST',
      path: '/reactors/:id/react',
      summary: 'Call a reactor',
      ...invoking,
      params: byId,
      body: reactRequest,
      bodyMayBeEmpty: true,
      reply: { status: 200, body: reactResponse },
      handle: ({ caller, params, body }) =>
        callReactor(tools, caller, { id: params.id, body, kind: 'sync' }),
    }),
    route({
      method: 'POST',
      path: '/reactors/:id/react-async',
      summary: 'Call a reactor, whose result is read later',
      ...invoking,
      params: byId,
      body: reactRequest,
      bodyMayBeEmpty: true,
      reply: { status: 202, body: asyncReactResponse },
      handle: ({ caller, params, body }) =>
        callReactor(tools, caller, { id: params.id, body, kind: 'async' }),
    }),
    route({
      method: 'GET',
      path: '/reactors/:id/results/:requestId',
      summary: 'Read the result of an asynchronous call',
      ...invoking,
      params: byRequestId,
      reply: { status: 200, body: reactResponse },
      handle: ({ caller, params }) => readResult(tools, caller, params),
    }),
    route({
      method: 'GET',
      path: '/reactors/:id/logs',
      summary: 'Read what the code of a reactor logged, newest call first',
      permission: 'reactor:read',
      params: byId,
      query: reactorLogsQuery,
      reply: { status: 200, body: reactorLogs },
      handle: ({ caller, params, query }) =>
        readReactorLogs(tools, caller, { id: params.id, query }),
    }),
  ];
}

/** Routes of reactors, and of the formulas that reactors had before they had code. */
import { create, list, patch, read, remove, replace } from '../../rules/stored-resource.ts';
import {
  formulasRemoved,
  type ReactorWriting,
  reactorResource,
} from '../../vault/reactors/resource.ts';
import { type Route, route } from '../protocol/route.ts';
import {
  reactor,
  reactorPage,
  reactorPatch,
  reactorQuery,
  reactorRequest,
} from '../schemas/reactor.ts';
import { anyJson, byId } from '../schemas/shared.ts';

export function reactorRoutes(tools: ReactorWriting): Route[] {
  const reactors = reactorResource(tools);
  return [
    ...formulaRoutes(),
    route({
      method: 'POST',
      path: '/reactors',
      summary: 'Create a reactor',
      permission: 'reactor:create',
      body: reactorRequest,
      reply: { status: 201, body: reactor },
      // They are counted.
      serialKey: ({ caller }) => `${caller.tenant.id} reactors`,
      handle: ({ caller, body }) => create(reactors, caller, body),
    }),
    route({
      method: 'GET',
      path: '/reactors',
      summary: 'List reactors, newest first',
      permission: 'reactor:read',
      query: reactorQuery,
      reply: { status: 200, body: reactorPage },
      handle: ({ caller, query }) => list(reactors, caller, query),
    }),
    route({
      method: 'GET',
      path: '/reactors/:id',
      summary: 'Read a reactor',
      permission: 'reactor:read',
      params: byId,
      reply: { status: 200, body: reactor },
      handle: ({ caller, params }) => read(reactors, caller, params.id),
    }),
    route({
      method: 'PUT',
      path: '/reactors/:id',
      summary: 'Replace a reactor',
      permission: 'reactor:update',
      params: byId,
      body: reactorRequest,
      reply: { status: 200, body: reactor },
      serialKey: ({ caller, params }) => `${caller.tenant.id} ${params.id}`,
      handle: ({ caller, params, body }) =>
        replace(reactors, caller, { id: params.id, request: body }),
    }),
    route({
      method: 'PATCH',
      path: '/reactors/:id',
      summary: 'Update a reactor by JSON merge patch',
      permission: 'reactor:update',
      params: byId,
      body: reactorPatch,
      mediaType: 'application/merge-patch+json',
      reply: { status: 204 },
      serialKey: ({ caller, params }) => `${caller.tenant.id} ${params.id}`,
      handle: ({ caller, params, body }) => patch(reactors, caller, { id: params.id, patch: body }),
    }),
    route({
      method: 'DELETE',
      path: '/reactors/:id',
      summary: 'Delete a reactor, with its waiting calls, their results and logs',
      permission: 'reactor:delete',
      params: byId,
      reply: { status: 204 },
      handle: ({ caller, params }) => remove(reactors, caller, params.id),
    }),
  ];
}

const removed = 'Removed; give the code to a reactor';

function formulaRoutes(): Route[] {
  return [
    route({
      method: 'GET',
      path: '/reactor-formulas',
      summary: removed,
      permission: 'reactor:read',
      reply: { status: 204 },
      handle: () => formulasRemoved(),
    }),
    route({
      method: 'POST',
      path: '/reactor-formulas',
      summary: removed,
      permission: 'reactor:create',
      body: anyJson,
      reply: { status: 204 },
      handle: () => formulasRemoved(),
    }),
    route({
      method: 'GET',
      path: '/reactor-formulas/:id',
      summary: removed,
      permission: 'reactor:read',
      params: byId,
      reply: { status: 204 },
      handle: () => formulasRemoved(),
    }),
    route({
      method: 'PUT',
      path: '/reactor-formulas/:id',
      summary: removed,
      permission: 'reactor:update',
      params: byId,
      body: anyJson,
      reply: { status: 204 },
      handle: () => formulasRemoved(),
    }),
    route({
      method: 'DELETE',
      path: '/reactor-formulas/:id',
      summary: removed,
      permission: 'reactor:delete',
      params: byId,
      reply: { status: 204 },
      handle: () => formulasRemoved(),
    }),
  ];
}

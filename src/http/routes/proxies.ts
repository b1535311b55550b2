/** Routes of proxies. */
import { create, list, patch, read, remove, replace } from '../../rules/stored-resource.ts';
import { type ProxyWriting, proxyResource } from '../../vault/proxies/resource.ts';
import { type Route, route } from '../protocol/route.ts';
import { proxy, proxyPage, proxyPatch, proxyQuery, proxyRequest } from '../schemas/proxy.ts';
import { byId } from '../schemas/shared.ts';

export function proxyRoutes(tools: ProxyWriting): Route[] {
  const proxies = proxyResource(tools);
  return [
    route({
      method: 'POST',
      path: '/proxies',
      summary: 'Create a proxy',
      permission: 'proxy:create',
      body: proxyRequest,
      reply: { status: 201, body: proxy },
      // They are counted.
      serialKey: ({ caller }) => `${caller.tenant.id} proxies`,
      handle: ({ caller, body }) => create(proxies, caller, body),
    }),
    route({
      method: 'GET',
      path: '/proxies',
      summary: 'List proxies, newest first',
      permission: 'proxy:read',
      query: proxyQuery,
      reply: { status: 200, body: proxyPage },
      handle: ({ caller, query }) => list(proxies, caller, query),
    }),
    route({
      method: 'GET',
      path: '/proxies/:id',
      summary: 'Read a proxy',
      permission: 'proxy:read',
      params: byId,
      reply: { status: 200, body: proxy },
      handle: ({ caller, params }) => read(proxies, caller, params.id),
    }),
    route({
      method: 'PUT',
      path: '/proxies/:id',
      summary: 'Replace a proxy; its key stays',
      permission: 'proxy:update',
      params: byId,
      body: proxyRequest,
      reply: { status: 200, body: proxy },
      serialKey: ({ caller, params }) => `${caller.tenant.id} ${params.id}`,
      handle: ({ caller, params, body }) =>
        replace(proxies, caller, { id: params.id, request: body }),
    }),
    route({
      method: 'PATCH',
      path: '/proxies/:id',
      summary: 'Update a proxy by JSON merge patch',
      permission: 'proxy:update',
      params: byId,
      body: proxyPatch,
      mediaType: 'application/merge-patch+json',
      reply: { status: 204 },
      serialKey: ({ caller, params }) => `${caller.tenant.id} ${params.id}`,
      handle: ({ caller, params, body }) => patch(proxies, caller, { id: params.id, patch: body }),
    }),
    route({
      method: 'DELETE',
      path: '/proxies/:id',
      summary: 'Delete a proxy',
      permission: 'proxy:delete',
      params: byId,
      reply: { status: 204 },
      handle: ({ caller, params }) => remove(proxies, caller, params.id),
    }),
  ];
}

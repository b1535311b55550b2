/** Routes of proxies. */
import { createProxy, type ProxyWriting } from '../../vault/proxies/create.ts';
import { deleteProxy } from '../../vault/proxies/delete.ts';
import { listProxies } from '../../vault/proxies/list.ts';
import { readProxy } from '../../vault/proxies/read.ts';
import { patchProxy, replaceProxy } from '../../vault/proxies/update.ts';
import { type Route, route } from '../protocol/route.ts';
import { proxy, proxyPage, proxyPatch, proxyQuery, proxyRequest } from '../schemas/proxy.ts';
import { byId } from '../schemas/shared.ts';

export function proxyRoutes(tools: ProxyWriting): Route[] {
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
      handle: ({ caller, body }) => createProxy(tools, caller, body),
    }),
    route({
      method: 'GET',
      path: '/proxies',
      summary: 'List proxies, newest first',
      permission: 'proxy:read',
      query: proxyQuery,
      reply: { status: 200, body: proxyPage },
      handle: ({ caller, query }) => listProxies(tools, caller, query),
    }),
    route({
      method: 'GET',
      path: '/proxies/:id',
      summary: 'Read a proxy',
      permission: 'proxy:read',
      params: byId,
      reply: { status: 200, body: proxy },
      handle: ({ caller, params }) => readProxy(tools, caller, params.id),
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
        replaceProxy(tools, caller, { id: params.id, proxy: body }),
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
      handle: ({ caller, params, body }) =>
        patchProxy(tools, caller, { id: params.id, patch: body }),
    }),
    route({
      method: 'DELETE',
      path: '/proxies/:id',
      summary: 'Delete a proxy',
      permission: 'proxy:delete',
      params: byId,
      reply: { status: 204 },
      handle: ({ caller, params }) => deleteProxy(tools, caller, params.id),
    }),
  ];
}

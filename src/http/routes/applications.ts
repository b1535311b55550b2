/** Routes of applications. */
import { create, read, remove } from '../../rules/stored-resource.ts';
import {
  type ApplicationWriting,
  applicationResource,
  listApplications,
  updateApplication,
} from '../../vault/applications/resource.ts';
import { type Route, route } from '../protocol/route.ts';
import {
  application,
  applicationPage,
  applicationQuery,
  applicationRequest,
  applicationUpdate,
} from '../schemas/application.ts';
import { byId } from '../schemas/shared.ts';

export function applicationRoutes(tools: ApplicationWriting): Route[] {
  const applications = applicationResource(tools);
  return [
    route({
      method: 'POST',
      path: '/applications',
      summary: 'Create an application and its first key',
      permission: 'application:create',
      body: applicationRequest,
      reply: { status: 201, body: application },
      handle: ({ caller, body }) => create(applications, caller, body),
    }),
    route({
      method: 'GET',
      path: '/applications',
      summary: 'List applications, newest first',
      permission: 'application:read',
      query: applicationQuery,
      reply: { status: 200, body: applicationPage },
      handle: ({ caller, query }) => listApplications(tools, caller, query),
    }),
    route({
      method: 'GET',
      path: '/applications/key',
      summary: 'Read the application of the calling key',
      permission: 'any key',
      reply: { status: 200, body: application },
      handle: ({ caller }) => read(applications, caller, caller.application),
    }),
    route({
      method: 'GET',
      path: '/applications/:id',
      summary: 'Read an application',
      permission: 'application:read',
      params: byId,
      reply: { status: 200, body: application },
      handle: ({ caller, params }) => read(applications, caller, params.id),
    }),
    route({
      method: 'PUT',
      path: '/applications/:id',
      summary: "Replace an application's name, permissions and rules",
      permission: 'application:update',
      params: byId,
      body: applicationUpdate,
      reply: { status: 200, body: application },
      handle: ({ caller, params, body }) =>
        updateApplication(tools, caller, { id: params.id, update: body }),
    }),
    route({
      method: 'DELETE',
      path: '/applications/:id',
      summary: 'Delete an application and its keys',
      permission: 'application:delete',
      params: byId,
      reply: { status: 204 },
      handle: ({ caller, params }) => remove(applications, caller, params.id),
    }),
  ];
}

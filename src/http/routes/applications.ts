/** Routes of applications. */
import { type ApplicationWriting, createApplication } from '../../vault/applications/create.ts';
import { deleteApplication } from '../../vault/applications/delete.ts';
import { listApplications } from '../../vault/applications/list.ts';
import { readApplication, readOwnApplication } from '../../vault/applications/read.ts';
import { updateApplication } from '../../vault/applications/update.ts';
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
  return [
    route({
      method: 'POST',
      path: '/applications',
      summary: 'Create an application and its first key',
      permission: 'application:create',
      body: applicationRequest,
      reply: { status: 201, body: application },
      handle: ({ caller, body }) => createApplication(tools, caller, body),
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
      handle: ({ caller }) => readOwnApplication(tools, caller),
    }),
    route({
      method: 'GET',
      path: '/applications/:id',
      summary: 'Read an application',
      permission: 'application:read',
      params: byId,
      reply: { status: 200, body: application },
      handle: ({ caller, params }) => readApplication(tools, caller, params.id),
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
      handle: ({ caller, params }) => deleteApplication(tools, caller, params.id),
    }),
  ];
}

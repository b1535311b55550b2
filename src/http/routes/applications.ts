/** Routes of applications. */
import { type ApplicationWriting, createApplication } from '../../vault/applications.ts';
import { type Route, route } from '../route.ts';
import { application, applicationRequest } from '../schemas/application.ts';

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
  ];
}

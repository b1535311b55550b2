/** Routes about access itself: what can be held, what to start from, and why a decision fell. */
import Type from 'typebox';
import { type Explaining, explainAccess } from '../../gate/explain.ts';
import { listPermissions } from '../../vault/applications/list-permissions.ts';
import { listTemplates, readTemplate } from '../../vault/applications/templates.ts';
import { type Route, route } from '../protocol/route.ts';
import {
  accessExplanation,
  accessQuestion,
  applicationTemplate,
  permissionList,
  permissionQuery,
} from '../schemas/access.ts';
import { byId } from '../schemas/shared.ts';

export function accessRoutes(tools: Explaining): Route[] {
  return [
    route({
      method: 'GET',
      path: '/permissions',
      summary: 'List permissions',
      permission: 'any key',
      query: permissionQuery,
      reply: { status: 200, body: permissionList },
      handle: ({ caller, query }) => listPermissions(tools, caller, query.application_type),
    }),
    route({
      method: 'GET',
      path: '/application-templates',
      summary: 'List application templates',
      permission: 'any key',
      reply: { status: 200, body: Type.Array(applicationTemplate) },
      handle: ({ caller }) => listTemplates(tools, caller),
    }),
    route({
      method: 'GET',
      path: '/application-templates/:id',
      summary: 'Read an application template',
      permission: 'any key',
      params: byId,
      reply: { status: 200, body: applicationTemplate },
      handle: ({ caller, params }) => readTemplate(tools, caller, params.id),
    }),
    route({
      method: 'POST',
      path: '/access/explain',
      summary: 'Explain which rule decides about a token or container, and what is shown',
      permission: 'application:read',
      body: accessQuestion,
      reply: { status: 200, body: accessExplanation },
      handle: ({ caller, body }) => explainAccess(tools, caller, body),
    }),
  ];
}

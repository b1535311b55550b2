/** Routes of the audit log. */
import Type from 'typebox';
import { type LogReading, listLogs } from '../../vault/logs.ts';
import { type Route, route } from '../route.ts';
import { cursorPage } from '../schemas/common.ts';
import { log } from '../schemas/log.ts';

const query = Type.Object(
  {
    entity_type: Type.Optional(Type.String({ maxLength: 50 })),
    entity_id: Type.Optional(Type.String({ maxLength: 400 })),
    start_date: Type.Optional(Type.String({ maxLength: 40 })),
    end_date: Type.Optional(Type.String({ maxLength: 40 })),
    start: Type.Optional(Type.String({ maxLength: 500 })),
    page: Type.Optional(Type.Integer({ minimum: 1, maximum: 2_147_483_647 })),
    size: Type.Optional(Type.Integer({ minimum: 0, maximum: 100 })),
  },
  { additionalProperties: false },
);

export function logRoutes(tools: LogReading): Route[] {
  return [
    route({
      method: 'GET',
      path: '/logs',
      summary: 'List log entries, newest first',
      permission: 'log:read',
      query,
      reply: { status: 200, body: cursorPage(log) },
      handle: ({ caller, query }) => listLogs(tools, caller, query),
    }),
  ];
}

/** Routes of the audit log. */
import Type from 'typebox';
import { type Checkpointing, readCheckpoint } from '../../vault/logs/checkpoints.ts';
import { type LogReading, listEntityTypes, listLogs } from '../../vault/logs/list.ts';
import { type Route, route } from '../protocol/route.ts';
import { checkpoint, entityTypes, logPage, shown, through } from '../schemas/log.ts';
import { line, pageQuery, strict } from '../schemas/shared.ts';

const query = Type.Object(
  {
    entity_type: Type.Optional(line({ maxLength: 50 })),
    entity_id: Type.Optional(line({ maxLength: 400 })),
    shown: Type.Optional(shown),
    through: Type.Optional(through),
    start_date: Type.Optional(line({ maxLength: 40 })),
    end_date: Type.Optional(line({ maxLength: 40 })),
    ...pageQuery,
  },
  strict,
);

export function logRoutes(tools: Checkpointing & LogReading): Route[] {
  return [
    route({
      method: 'GET',
      path: '/logs',
      summary: 'List log entries, newest first',
      permission: 'log:read',
      query,
      reply: { status: 200, body: logPage },
      handle: ({ caller, query }) => listLogs(tools, caller, query),
    }),
    route({
      method: 'GET',
      path: '/logs/entity-types',
      summary: 'List the entity types of log entries',
      permission: 'log:read',
      reply: { status: 200, body: entityTypes },
      handle: ({ caller }) => listEntityTypes(tools, caller),
    }),
    route({
      method: 'GET',
      path: '/logs/checkpoint',
      summary: 'Read the newest signed checkpoint of the log',
      permission: 'log:read',
      reply: { status: 200, body: checkpoint },
      handle: ({ caller }) => readCheckpoint(tools, caller),
    }),
  ];
}

/** Shapes of the audit log. */
import Type from 'typebox';
import { text, timestamp, uuid } from './common.ts';

export const log = Type.Object({
  tenant_id: uuid,
  actor_id: Type.Optional(uuid),
  actor_type: text,
  entity_type: text,
  entity_id: text,
  operation: text,
  message: text,
  created_at: timestamp,
});

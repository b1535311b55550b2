/** Shapes of the audit log. */
import Type from 'typebox';
import { shownWords, throughWords } from '../../lib/log-chain/disclosure.ts';
import { cursorPage, text, timestamp, uuid } from './shared.ts';

/** How a read showed data, and the operation that showed it. */
export const shown = Type.Enum([...shownWords]);
export const through = Type.Enum([...throughWords]);

const log = Type.Object(
  {
    tenant_id: uuid,
    actor_id: Type.Optional(uuid),
    actor_type: text,
    entity_type: text,
    entity_id: text,
    operation: text,
    message: text,
    shown: Type.Optional(shown),
    through: Type.Optional(through),
    created_at: timestamp,
  },
  { title: 'LogEntry' },
);

/** A page by cursor, or by number. */
export const logPage = cursorPage(log);

export const entityTypes = Type.Array(
  Type.Object({ display_name: text, value: text }, { title: 'EntityType' }),
);

/** `statement` is the text that is signed; the attributes before it are taken out of it. */
export const checkpoint = Type.Object(
  {
    tenant_id: uuid,
    seq: Type.Integer(),
    created_at: timestamp,
    statement: text,
    signature: text,
    public_key: text,
    public_key_pem: text,
    public_keys: Type.Array(text),
  },
  { title: 'LogCheckpoint' },
);

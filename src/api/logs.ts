/** The audit log. */
import Type from 'typebox';
import { type Checkpointing, readCheckpoint } from '../audit/checkpoints.ts';
import { type LogReading, listEntityTypes, listLogs } from '../audit/list.ts';
import { verifyLog } from '../audit/verified.ts';
import { shownWords, throughWords } from '../store/log-chain/disclosure.ts';
import { operation, type Resource } from './declaration/operation.ts';
import { attribute, object } from './declaration/shape.ts';
import { cursorPage, line, pageQuery, shared, strict, text, uuid } from './shapes.ts';

const { tenant_id, created_at } = shared;

/** How a read showed data, and the operation that showed it. */
const shown = Type.Optional(Type.Enum([...shownWords]));
const through = Type.Optional(Type.Enum([...throughWords]));

const results = ['success', 'denied', 'failed'] as const;

const logEntry = object(
  {
    tenant_id,
    actor_id: attribute(Type.Optional(uuid), 'Who did it.'),
    actor_type: attribute(text, '`application`, `session`, `user` or `system`.'),
    entity_type: attribute(text, 'What kind of thing it is about, such as `token`.'),
    entity_id: attribute(text, 'The id of what it is about.'),
    operation: attribute(text, 'What was done, such as `create`.'),
    message: attribute(text, 'The same in words, and whether it was denied.'),
    result: attribute(text, '`success`, `denied` or `failed`.'),
    shown: attribute(shown, 'How a read showed the data.'),
    through: attribute(through, 'The operation that showed the data.'),
    application_id: attribute(
      Type.Optional(uuid),
      'The application with whose rights it was done; of a session, the one that created it.',
    ),
    key_id: attribute(Type.Optional(uuid), 'The key that was sent.'),
    session_id: attribute(Type.Optional(uuid), 'The session that did it.'),
    person_id: attribute(Type.Optional(text), 'The person who used the console.'),
    person_name: attribute(Type.Optional(text), 'The name of that person at the time.'),
    container: attribute(Type.Optional(text), 'Where the token is that it is about.'),
    address: attribute(Type.Optional(text), 'The network address of the client.'),
    forwarded: attribute(
      Type.Optional(text),
      'The trusted proxies that passed the request on, the nearest to the client first.',
    ),
    user_agent: attribute(
      Type.Optional(text),
      'The products that the client names, shortened. A client can claim any.',
    ),
    trace_id: attribute(
      Type.Optional(text),
      'The trace id of the request; for a bulk request, followed by a mark of that request.',
    ),
    created_at,
  },
  { title: 'LogEntry' },
);

const date = Type.Optional(line({ maxLength: 40 }));

const logQuery = object(
  {
    entity_type: attribute(
      Type.Optional(line({ maxLength: 50 })),
      'Only entries about this kind of thing.',
    ),
    entity_id: attribute(
      Type.Optional(line({ maxLength: 400 })),
      'Only entries about the thing with this id.',
    ),
    shown: attribute(shown, 'Only entries of reads that showed the data like this.'),
    through: attribute(through, 'Only entries of reads through this operation.'),
    actor_id: attribute(
      Type.Optional(line({ maxLength: 50 })),
      'Only entries about what the application or session with this id did.',
    ),
    key_id: attribute(
      Type.Optional(line({ maxLength: 50 })),
      'Only entries about what was done with this key.',
    ),
    session_id: attribute(
      Type.Optional(line({ maxLength: 50 })),
      'Only entries about what this session did.',
    ),
    address: attribute(
      Type.Optional(line({ maxLength: 45 })),
      'Only entries about requests from this network address.',
    ),
    operation: attribute(
      Type.Optional(line({ maxLength: 50 })),
      'Only entries about this operation, such as `delete`.',
    ),
    result: attribute(Type.Optional(Type.Enum([...results])), 'Only entries with this result.'),
    container: attribute(
      Type.Optional(line({ maxLength: 400 })),
      'Only entries about tokens in exactly this container.',
    ),
    trace_id: attribute(
      Type.Optional(line({ maxLength: 120 })),
      'Only entries about the request with this trace id.',
    ),
    start_date: attribute(date, 'An ISO 8601 date or date-time; entries from then on.'),
    end_date: attribute(date, 'An ISO 8601 date or date-time; entries before then.'),
    ...pageQuery,
  },
  strict,
);

const entityType = object(
  {
    display_name: attribute(text, 'For people.'),
    value: attribute(text, 'As `entity_type` of log entries has it.'),
  },
  { title: 'EntityType' },
);

/** `statement` is the signed string; the attributes before it are extracted from it. */
const checkpoint = object(
  {
    tenant_id,
    seq: attribute(Type.Integer(), 'The number of the checkpoint, from 1 without a gap.'),
    created_at,
    statement: attribute(text, 'The text that is signed.'),
    signature: attribute(text, 'An Ed25519 signature over the statement, in base64.'),
    public_key: attribute(text, 'The key that verifies it, in base64.'),
    public_key_pem: attribute(text, 'The same key in PEM, as its SubjectPublicKeyInfo.'),
    public_keys: attribute(
      Type.Array(text),
      'The keys that signed up to this checkpoint, as its statement names them; the newest last.',
    ),
  },
  { title: 'LogCheckpoint' },
);

const finding = object(
  {
    kind: attribute(text, 'Such as `edited`, `deleted`, or `inserted`.'),
    stream_id: attribute(Type.Optional(text), 'The stream of entries; absent for a checkpoint.'),
    seq: attribute(Type.Integer(), 'The number of the entry in its stream, or of the checkpoint.'),
    message: attribute(text, 'The same in words.'),
  },
  { title: 'VerificationFinding' },
);

const moment = Type.Union([text, Type.Null()]);

const verification = object(
  {
    intact_since: attribute(
      moment,
      'The first checkpoint since which everything that was signed is as it was written.',
    ),
    verified_until: attribute(moment, 'The last checkpoint that was verified.'),
    signed_since: attribute(moment, 'The first checkpoint of the log.'),
    checkpoint: attribute(
      Type.Union([Type.Integer(), Type.Null()]),
      'The number of the last checkpoint that was verified.',
    ),
    newest_checkpoint: attribute(
      Type.Union([Type.Integer(), Type.Null()]),
      'The number of the newest checkpoint. While it is another one, send the request again.',
    ),
    findings: attribute(
      Type.Array(finding),
      'What this request has found. Further requests continue behind it.',
    ),
  },
  { title: 'LogVerification' },
);

export const logs: Resource<Checkpointing & LogReading> = {
  tag: 'Logs',
  description:
    'Who did what, and to what. Entries are chained, so that a change to one can be proven.',
  operations: (tools) => [
    operation({
      id: 'listLogs',
      method: 'GET',
      path: '/logs',
      summary: 'List log entries, newest first',
      description: 'Follow `pagination.next`, or count `page` upwards until `data` is empty.',
      permission: 'log:read',
      query: logQuery,
      reply: { status: 200, body: cursorPage(logEntry) },
      example: {
        query: { entity_type: 'token', entity_id: 'order-4711-card', size: '1' },
        reply: {
          pagination: { page_size: 1 },
          data: [{ entity_type: 'token', entity_id: 'order-4711-card' }],
        },
      },
      handle: ({ caller, query }) => listLogs(tools, caller, query),
    }),
    operation({
      id: 'listLogEntityTypes',
      method: 'GET',
      path: '/logs/entity-types',
      summary: 'List the entity types of log entries',
      permission: 'log:read',
      reply: { status: 200, body: Type.Array(entityType) },
      example: {},
      handle: ({ caller }) => listEntityTypes(tools, caller),
    }),
    operation({
      id: 'getLogCheckpoint',
      method: 'GET',
      path: '/logs/checkpoint',
      summary: 'Read the newest signed checkpoint of the log',
      description:
        'The attributes before `statement` are taken from it; the signature is over its text.',
      permission: 'log:read',
      reply: { status: 200, body: checkpoint },
      example: {},
      handle: ({ caller }) => readCheckpoint(tools, caller),
    }),
    operation({
      id: 'verifyLog',
      method: 'GET',
      path: '/logs/verification',
      summary: 'Verify what was signed since the last verification',
      description:
        'The vault reads each entry once for this, at most some 20,000 in a request, and a log entry says how far it ' +
        'came. The command `strongroom logs verify` reads the whole log again, and trusts only the keys that you ' +
        'give it.',
      permission: 'log:read',
      reply: { status: 200, body: verification },
      example: {},
      handle: ({ caller }) => verifyLog(tools, caller),
    }),
  ],
};

/** The keys of the caller's own tenant: their versions, rotations, and the end of what nothing needs any more. */
import Type from 'typebox';
import { destroyKey } from '../access/key-rotations/destroy.ts';
import { keyPurposes, readTenantKeys } from '../access/key-rotations/key-list.ts';
import {
  beginRotation,
  type KeyRotating,
  listRotations,
  pauseRotations,
} from '../access/key-rotations/rotation.ts';
import { rotatedPurposes } from '../store/key-tables.ts';
import { operation, type Resource } from './declaration/operation.ts';
import { attribute, object } from './declaration/shape.ts';
import { shared, strict, text, timestamp, uuid } from './shapes.ts';

const { tenant_id } = shared;
const version = Type.Integer({ minimum: 1, maximum: 2_147_483_647 });

const tenantKey = object({
  purpose: attribute(text, 'What the key is for, such as `data`.'),
  tenant_id,
  version: attribute(version, 'Counts the keys of the purpose.'),
  state: attribute(text, '`active`, `decrypt_only` or `destroyed`.'),
  rows: attribute(
    Type.Union([Type.Integer(), Type.Null()]),
    'How many rows are under it. Null for `row`, whose rows are not counted, and where no counts were asked for.',
  ),
  created_at: attribute(timestamp, 'When it was made.'),
});

const keysQuery = object(
  {
    counts: attribute(
      Type.Optional(Type.Enum(['none'])),
      '`none` leaves out `rows`: counting a million takes seconds.',
    ),
  },
  strict,
);

const tenantKeys = object(
  { keys: attribute(Type.Array(tenantKey), 'By purpose and version.') },
  { title: 'TenantKeys' },
);

const rotation = object(
  {
    purpose: attribute(
      text,
      'Which key is replaced: `data`, `search`, `fingerprint`, `webhooks` or `log`. `period` is a new data key, ' +
        'under which nothing is sealed again.',
    ),
    tenant_id: attribute(uuid, tenant_id),
    state: attribute(
      text,
      '`waiting` for another rotation, `introducing` the new key to all servers, `sealing` rows again, `paused`, or ' +
        '`finished`.',
    ),
    rows_done: attribute(Type.Integer(), 'Rows that were sealed again.'),
    rows_total: attribute(
      Type.Optional(Type.Integer()),
      'Rows that were under earlier keys when the sealing began.',
    ),
    unreadable: attribute(
      Type.Integer(),
      'Rows that were altered outside the vault and stay as they are.',
    ),
    started_at: attribute(timestamp, 'When it was requested.'),
    finished_at: attribute(Type.Optional(timestamp), 'From then on nothing is under earlier keys.'),
  },
  { title: 'KeyRotation' },
);

const rotationRequest = object(
  {
    purpose: attribute(
      Type.Enum([...rotatedPurposes]),
      'Which key to replace: the one that seals data and stored responses, that of search terms, that of ' +
        'fingerprints, which change with it, the one that signs deliveries to webhooks, or the one that signs the log.',
    ),
  },
  { ...strict, title: 'KeyRotationRequest' },
);

const byVersion = object({
  purpose: attribute(Type.Enum([...keyPurposes]), 'What the key is for.'),
  version: attribute(Type.String({ pattern: '^[1-9][0-9]{0,8}$' }), 'The version of the key.'),
});

export const tenantKeysResource: Resource<KeyRotating> = {
  tag: 'Tenant keys',
  description:
    'The keys under which the vault stores what the tenant has. A rotation replaces one while requests go on.',
  operations: (tools) => [
    operation({
      id: 'listTenantKeys',
      method: 'GET',
      path: '/tenants/self/keys',
      summary: 'List the versions of keys, and how many rows are under each',
      description: 'Counting reads all rows of the tenant. You can leave the counts out.',
      permission: 'keys:rotate',
      query: keysQuery,
      reply: { status: 200, body: tenantKeys },
      example: {},
      serialKey: ({ caller, query }) =>
        query.counts === 'none' ? undefined : `${caller.tenant.id} key list`,
      handle: ({ caller, query }) => readTenantKeys(tools, caller, query),
    }),
    operation({
      id: 'rotateTenantKey',
      method: 'POST',
      path: '/tenants/self/keys/rotations',
      summary: 'Rotate a key, and re-encrypt what is under the previous version',
      description:
        'The rotation goes on after the response. While one of the same purpose is under way, another is refused. ' +
        'For a day after a rotation of `webhooks`, deliveries are signed with both keys, and another rotation is ' +
        'refused as well. A rotation of `log` leaves a checkpoint in which the key before introduces the new one.',
      permission: 'keys:rotate',
      body: rotationRequest,
      reply: { status: 202, body: rotation },
      problems: ['conflict'],
      example: { body: { purpose: 'data' }, reply: { purpose: 'data', state: 'waiting' } },
      handle: ({ caller, body }) => beginRotation(tools, caller, body.purpose),
    }),
    operation({
      id: 'listTenantKeyRotations',
      method: 'GET',
      path: '/tenants/self/keys/rotations',
      summary: 'List the latest rotation of each purpose, the oldest first',
      permission: 'keys:rotate',
      reply: { status: 200, body: Type.Array(rotation) },
      example: { reply: [{ purpose: 'data', state: 'waiting' }] },
      handle: ({ caller }) => listRotations(tools, caller),
    }),
    operation({
      id: 'pauseTenantKeyRotations',
      method: 'POST',
      path: '/tenants/self/keys/rotations/pause',
      summary: 'Pause the rotations that are under way',
      description:
        'Servers follow within a few seconds. A paused rotation is complete in each row, so requests do not notice it.',
      permission: 'keys:rotate',
      reply: { status: 200, body: Type.Array(rotation) },
      example: { reply: [{ purpose: 'data', state: 'paused' }] },
      handle: ({ caller }) => pauseRotations(tools, caller, true),
    }),
    operation({
      id: 'resumeTenantKeyRotations',
      method: 'POST',
      path: '/tenants/self/keys/rotations/resume',
      summary: 'Continue the rotations that are paused',
      permission: 'keys:rotate',
      reply: { status: 200, body: Type.Array(rotation) },
      example: { reply: [{ purpose: 'data', state: 'waiting' }] },
      handle: ({ caller }) => pauseRotations(tools, caller, false),
    }),
    operation({
      id: 'destroyTenantKey',
      method: 'DELETE',
      path: '/tenants/self/keys/:purpose/:version',
      summary: 'Destroy a version of a key that has no rows',
      description: 'The active version and one with rows are refused.',
      permission: 'keys:rotate',
      params: byVersion,
      reply: { status: 204 },
      problems: ['conflict'],
      example: { params: { purpose: 'data', version: '1' }, status: 409 },
      serialKey: ({ caller }) => `${caller.tenant.id} key list`,
      handle: ({ caller, params: { purpose, version: number } }) =>
        destroyKey(tools, caller, { purpose, version: Number(number) }),
    }),
  ],
};

/** Approvals: what people decide about requests of programs. */
import Type from 'typebox';
import {
  type ApprovalDeciding,
  approvalResource,
  decideApproval,
  listApprovals,
} from '../proxies/approvals/resource.ts';
import { read } from '../rules/stored-resource.ts';
import { idOf, operation, type Resource } from './declaration/operation.ts';
import { attribute, object } from './declaration/shape.ts';
import {
  byId,
  nullable,
  offsetPage,
  pageQuery,
  shared,
  strict,
  text,
  timestamp,
  uuid,
} from './shapes.ts';

const { id, tenant_id, created_at, expires_at } = shared;

const scope = Type.Enum(['request', 'host']);
const scopeMeaning =
  '`request` for this one; `host` for a day also for all requests of the application under the policy to the host, ' +
  'until the policy changes, which needs a policy with `approval: first`.';

const token = object(
  {
    id: attribute(text, 'The token whose value is sent.'),
    property: attribute(Type.Optional(text), 'The property of its data.'),
    place: attribute(text, 'The place of the policy where it stands.'),
  },
  { title: 'ApprovalToken' },
);

const content = object(
  {
    type: attribute(Type.Optional(text), 'The media type.'),
    bytes: attribute(
      Type.Integer(),
      'How many bytes it has, with placeholders in place of values.',
    ),
  },
  { title: 'ApprovalContent' },
);

const person = object(
  { id: attribute(uuid, 'Identifies the person.'), name: shared.name },
  { title: 'ApprovalPerson' },
);

const approval = object(
  {
    id,
    tenant_id,
    status: attribute(Type.Enum(['waiting', 'approved', 'denied']), 'What became of the request.'),
    application_id: attribute(uuid, 'The application whose program sends the request.'),
    application_name: attribute(Type.Optional(text), 'Its name.'),
    key_id: attribute(Type.Optional(uuid), 'Its key.'),
    method: attribute(text, 'The method of the request.'),
    host: attribute(text, 'The host to which it is sent, and its port.'),
    path: attribute(
      text,
      'The beginning of its path, without the query. Asterisks are in place of numbers of 9 digits or more.',
    ),
    content: attribute(Type.Optional(content), 'Its body, which nobody sees.'),
    tokens: attribute(Type.Array(token), 'Whose values are sent with it, and where they stand.'),
    approval: attribute(Type.Enum(['first', 'always']), 'For what its policy wants a person.'),
    scope: attribute(Type.Optional(scope), `For what it was approved: ${scopeMeaning}`),
    decided_by: attribute(Type.Optional(uuid), 'The application that decided.'),
    person: attribute(Type.Optional(person), 'The person who acted as that application.'),
    decided_at: attribute(Type.Optional(timestamp), 'When it was decided.'),
    created_at,
    expires_at,
  },
  { title: 'Approval', description: 'A request of a program that waits for a person.' },
);

const approvalRequest = object(
  {
    scope: attribute(
      nullable(scope),
      `For what it is approved: ${scopeMeaning} Unless given, \`host\` where the policy allows it.`,
    ),
  },
  { ...strict, title: 'ApprovalRequest' },
);

const statusQuery = object({
  status: attribute(
    Type.Optional(Type.Enum(['waiting', 'approved', 'denied'])),
    'Only those of this status.',
  ),
  ...pageQuery,
});

const exampleId = idOf(13);

export const approvals: Resource<ApprovalDeciding> = {
  tag: 'Approvals',
  description:
    'Under an egress policy with `approval`, a request of a program waits up to 10 minutes for a person. Nothing of ' +
    'it is sent, and no value is opened before the decision. What was decided is kept for a day.',
  operations: (tools) => [
    operation({
      id: 'listApprovals',
      method: 'GET',
      path: '/approvals',
      summary: 'List requests that wait for a person, and those decided within a day, newest first',
      permission: 'approval:read',
      query: statusQuery,
      reply: { status: 200, body: offsetPage(approval) },
      example: { query: { status: 'waiting' }, reply: { data: [] } },
      handle: ({ caller, query }) => listApprovals(tools, caller, query),
    }),
    operation({
      id: 'getApproval',
      method: 'GET',
      path: '/approvals/:id',
      summary: 'Read a request that waits for a person, or its decision',
      permission: 'approval:read',
      tagged: true,
      params: byId,
      reply: { status: 200, body: approval },
      problems: ['not_found'],
      example: { params: { id: exampleId }, status: 404 },
      handle: ({ caller, params }) => read(approvalResource(tools), caller, params.id),
    }),
    operation({
      id: 'approveRequest',
      method: 'POST',
      path: '/approvals/:id/approve',
      summary: 'Approve a request that waits, which is then sent',
      permission: 'approval:decide',
      params: byId,
      body: approvalRequest,
      bodyMayBeEmpty: true,
      reply: { status: 200, body: approval },
      problems: ['not_found', 'conflict'],
      example: { params: { id: exampleId }, body: { scope: 'request' }, status: 404 },
      handle: ({ caller, params, body }) =>
        decideApproval(tools, caller, { ...body, id: params.id, decision: 'approve' }),
    }),
    operation({
      id: 'denyRequest',
      method: 'POST',
      path: '/approvals/:id/deny',
      summary: 'Deny a request that waits, which then fails with 403',
      permission: 'approval:decide',
      params: byId,
      reply: { status: 200, body: approval },
      problems: ['not_found', 'conflict'],
      example: { params: { id: exampleId }, status: 404 },
      handle: ({ caller, params }) =>
        decideApproval(tools, caller, { id: params.id, decision: 'deny' }),
    }),
  ],
};

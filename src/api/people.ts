/** People: who may use the console, and as which applications. */
import Type from 'typebox';
import { endConsoleSession, listConsoleSessions } from '../access/console-sessions.ts';
import { createLink } from '../access/people/links.ts';
import { listMethods, removeMethod } from '../access/people/methods.ts';
import {
  createPerson,
  listPeople,
  type PeopleListing,
  type PeopleWriting,
  readPerson,
  removePerson,
  rolesMax,
  updatePerson,
} from '../access/people/resource.ts';
import { idOf, operation, type Resource } from './declaration/operation.ts';
import { attribute, object } from './declaration/shape.ts';
import { byId, cursorPage, line, pathId, shared, strict, text, timestamp, uuid } from './shapes.ts';

const { id, tenant_id, created_by, created_at, modified_by, modified_at } = shared;

const roles = 'The applications as which the person may act, with their permissions and rules.';

const person = object(
  {
    id,
    tenant_id,
    name: shared.name,
    applications: attribute(Type.Array(uuid), roles),
    created_by: Type.Optional(created_by),
    created_at,
    modified_by,
    modified_at,
  },
  { title: 'Person' },
);

const personRequest = object(
  {
    name: attribute(line({ minLength: 1, maxLength: 80 }), 'As the log names the person.'),
    applications: attribute(Type.Array(text, { minItems: 1, maxItems: rolesMax }), roles),
  },
  { ...strict, title: 'PersonRequest' },
);

const link = object(
  {
    id,
    person_id: attribute(uuid, 'The person whom the link lets in.'),
    code: attribute(
      text,
      'The link is the address of the console with `#` and this code behind it.',
    ),
    expires_at: attribute(timestamp, 'When the link ends; it also ends when it is used.'),
  },
  { title: 'SignInLink' },
);

const session = object(
  {
    id,
    person_id: attribute(uuid, 'The person who signed in.'),
    sign_in: attribute(text, 'How the person signed in, such as `link`.'),
    address: attribute(text, 'From which network address.'),
    created_at,
    idle_at: attribute(timestamp, 'When it ends unless it is used before.'),
    expires_at: attribute(timestamp, 'When it ends at the latest.'),
  },
  { title: 'ConsoleSession' },
);

const signInMethod = object(
  {
    id,
    person_id: attribute(uuid, 'The person who signs in with it.'),
    kind: attribute(text, 'What it is, such as `passkey`.'),
    name: attribute(text, 'As the person named it.'),
    created_at,
    used_at: attribute(timestamp, 'When the last sign-in with it began.'),
  },
  { title: 'SignInMethod' },
);

const byMethod = object({
  id: pathId,
  methodId: attribute(text, 'The id of the sign-in method.'),
});

const byPersonSession = object({
  id: pathId,
  sessionId: attribute(text, 'The id of the session.'),
});

const exampleId = idOf(14);
const role = idOf(11);
const exampleCode = 'Nonce0000000000000000000000000001';

export const people: Resource<PeopleWriting & PeopleListing> = {
  tag: 'People',
  description:
    'A person uses the console. A role is an application: the person acts as one of its applications, with the same ' +
    'permissions and rules, and the log names both. A person sees values masked at most unless the request gives ' +
    'the reason in the header `SVC-REASON`, which the log repeats.',
  operations: (tools) => [
    operation({
      id: 'createPerson',
      method: 'POST',
      path: '/people',
      summary: 'Add a person',
      description:
        'You can give a person any application of the tenant, just as `application:create` lets you create a key of ' +
        'any application.',
      permission: 'person:create',
      tagged: true,
      body: personRequest,
      reply: { status: 201, body: person },
      problems: ['unprocessable'],
      example: {
        body: { name: 'Ada Lovelace', applications: [role] },
        reply: { id: exampleId, name: 'Ada Lovelace', applications: [role] },
      },
      handle: ({ caller, body }) => createPerson(tools, caller, body),
    }),
    operation({
      id: 'listPeople',
      method: 'GET',
      path: '/people',
      summary: 'List people, newest first',
      permission: 'person:read',
      reply: { status: 200, body: cursorPage(person) },
      example: { reply: { data: [{ id: exampleId, name: 'Ada Lovelace' }] } },
      handle: ({ caller }) => listPeople(tools, caller),
    }),
    operation({
      id: 'getPerson',
      method: 'GET',
      path: '/people/:id',
      summary: 'Read a person',
      permission: 'person:read',
      tagged: true,
      params: byId,
      reply: { status: 200, body: person },
      example: { params: { id: exampleId }, reply: { id: exampleId, name: 'Ada Lovelace' } },
      handle: ({ caller, params }) => readPerson(tools, caller, params.id),
    }),
    operation({
      id: 'updatePerson',
      method: 'PUT',
      path: '/people/:id',
      summary: "Replace a person's name and applications",
      description: 'An absent application is removed at once, including from open sessions.',
      permission: 'person:update',
      tagged: true,
      params: byId,
      body: personRequest,
      reply: { status: 200, body: person },
      example: {
        params: { id: exampleId },
        body: { name: 'Ada King', applications: [role] },
        reply: { id: exampleId, name: 'Ada King', applications: [role] },
      },
      handle: ({ caller, params, body }) =>
        updatePerson(tools, caller, { id: params.id, update: body }),
    }),
    operation({
      id: 'createSignInLink',
      method: 'POST',
      path: '/people/:id/links',
      summary: 'Create a link that lets a person in, once and within ten minutes',
      permission: 'person:create',
      params: byId,
      reply: { status: 201, body: link },
      example: { params: { id: exampleId }, reply: { person_id: exampleId, code: exampleCode } },
      handle: ({ caller, params }) => createLink(tools, caller, params.id),
    }),
    operation({
      id: 'listConsoleSessions',
      method: 'GET',
      path: '/people/:id/sessions',
      summary: "List a person's sessions in the console, newest first",
      permission: 'person:read',
      params: byId,
      reply: { status: 200, body: Type.Array(session) },
      example: { params: { id: exampleId }, reply: [] },
      handle: ({ caller, params }) => listConsoleSessions(tools, caller, params.id),
    }),
    operation({
      id: 'endConsoleSession',
      method: 'DELETE',
      path: '/people/:id/sessions/:sessionId',
      summary: 'End a session in the console',
      permission: 'person:delete',
      params: byPersonSession,
      reply: { status: 204 },
      problems: ['not_found'],
      example: { params: { id: exampleId, sessionId: idOf(15) }, status: 404 },
      handle: ({ caller, params }) =>
        endConsoleSession(tools, caller, { person: params.id, session: params.sessionId }),
    }),
    operation({
      id: 'listSignInMethods',
      method: 'GET',
      path: '/people/:id/sign-in-methods',
      summary: 'List the sign-in methods of a person, such as passkeys',
      permission: 'person:read',
      params: byId,
      reply: { status: 200, body: Type.Array(signInMethod) },
      example: { params: { id: exampleId }, reply: [] },
      handle: ({ caller, params }) => listMethods(tools, caller, params.id),
    }),
    operation({
      id: 'deleteSignInMethod',
      method: 'DELETE',
      path: '/people/:id/sign-in-methods/:methodId',
      summary: 'Remove a passkey or another sign-in method, and end the sessions of its person',
      permission: 'person:delete',
      params: byMethod,
      reply: { status: 204 },
      problems: ['not_found'],
      example: { params: { id: exampleId, methodId: idOf(16) }, status: 404 },
      handle: ({ caller, params }) =>
        removeMethod(tools, caller, { person: params.id, method: params.methodId }),
    }),
    operation({
      id: 'deletePerson',
      method: 'DELETE',
      path: '/people/:id',
      summary: 'Remove a person, and end all sessions of the person',
      permission: 'person:delete',
      tagged: true,
      params: byId,
      reply: { status: 204 },
      example: { params: { id: exampleId } },
      handle: ({ caller, params }) => removePerson(tools, caller, params.id),
    }),
  ],
};

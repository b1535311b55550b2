/** Egress: what programs hold in the place of values, and where their requests may go. */
import Type from 'typebox';
import { type EgressExplaining, explainEgress } from '../proxies/egress/explain-egress.ts';
import { makePlaceholder, type PlaceholderMaking } from '../proxies/egress/make-placeholder.ts';
import { readAuthority } from '../proxies/egress/read-authority.ts';
import {
  approvals,
  egressCountMax,
  egressMethods,
  policiesMax,
  policyItemsMax,
  policyTextLengthMax,
} from '../rules/egress-policies.ts';
import { type Operation, operation, type Resource } from './declaration/operation.ts';
import { attribute, documented, object } from './declaration/shape.ts';
import { line, nullable, strict, text, timestamp } from './shapes.ts';

const count = Type.Integer({ minimum: 1, maximum: egressCountMax });

const limit = object(
  {
    per_hour: attribute(Type.Optional(count), 'How many in an hour.'),
    per_day: attribute(Type.Optional(count), 'How many in a day.'),
  },
  { ...strict, title: 'EgressLimit' },
);

const meanings = {
  host: 'A host such as `api.example.com`, or `*.example.com`, where one label stands for the star.',
  port: 'Its port; 443 unless given, and 80 with `plain`.',
  plain: 'True for requests to http, without TLS. No value is sent there.',
  tunnel: 'True to pass connections on without opening them. No value is sent there.',
  websocket: 'True if a `GET` may open a WebSocket, in which the program sends whatever it likes.',
  methods: 'Methods that may be used; all unless given.',
  paths: 'Paths that may be requested, exact or with `*`; all unless given.',
  tokens: 'The ids of tokens whose values may be sent.',
  containers: 'Containers; values of the tokens in them and below them may be sent.',
  places:
    'Where a value may stand: `header:authorization`, `json:card.number` (`*` for any member or element), or ' +
    '`form:card[number]`. In JSON and in forms, the placeholder must be all of the string.',
  calls: 'How many requests each key may send.',
  values: 'How many values each key may send.',
  approval: 'Whether a person approves: `first` for the first request in a day, `always` for each.',
};

const list = Type.Array(text);
const listOf = (items: object) =>
  nullable(documented(list, { minItems: 1, maxItems: policyItemsMax, items }));
const limited = { type: 'string', maxLength: policyTextLengthMax };

const policyRequest = object(
  {
    host: attribute(line({ minLength: 1, maxLength: 253 }), meanings.host),
    port: attribute(nullable(Type.Integer({ minimum: 1, maximum: 65_535 })), meanings.port),
    plain: attribute(nullable(Type.Boolean()), meanings.plain),
    tunnel: attribute(nullable(Type.Boolean()), meanings.tunnel),
    websocket: attribute(nullable(Type.Boolean()), meanings.websocket),
    methods: attribute(listOf({ type: 'string', enum: egressMethods }), meanings.methods),
    paths: attribute(listOf({ ...limited, pattern: '^[/*][!"$->@-\\[\\]-~]*$' }), meanings.paths),
    tokens: attribute(listOf(limited), meanings.tokens),
    containers: attribute(listOf(limited), meanings.containers),
    places: attribute(
      listOf({ ...limited, pattern: '^(?:header|json|form):.+$' }),
      meanings.places,
    ),
    calls: attribute(nullable(limit), meanings.calls),
    values: attribute(nullable(limit), meanings.values),
    approval: attribute(nullable(Type.Enum([...approvals])), meanings.approval),
  },
  { ...strict, title: 'EgressPolicyRequest' },
);

const policy = object(
  {
    host: attribute(text, meanings.host),
    port: attribute(Type.Optional(Type.Integer()), meanings.port),
    plain: attribute(Type.Optional(Type.Boolean()), meanings.plain),
    tunnel: attribute(Type.Optional(Type.Boolean()), meanings.tunnel),
    websocket: attribute(Type.Optional(Type.Boolean()), meanings.websocket),
    methods: attribute(Type.Optional(list), meanings.methods),
    paths: attribute(Type.Optional(list), meanings.paths),
    tokens: attribute(Type.Optional(list), meanings.tokens),
    containers: attribute(Type.Optional(list), meanings.containers),
    places: attribute(Type.Optional(list), meanings.places),
    calls: attribute(Type.Optional(limit), meanings.calls),
    values: attribute(Type.Optional(limit), meanings.values),
    approval: attribute(Type.Optional(Type.Enum(['first', 'always'])), meanings.approval),
  },
  { title: 'EgressPolicy' },
);

const policiesMeaning =
  'Where its programs may send requests through the address for egress, and which values may be in them. The first ' +
  'policy that matches decides. Only for private applications; without it, they reach nothing.';

export const egressRequest = attribute(
  nullable(documented(Type.Array(policyRequest), { maxItems: policiesMax })),
  policiesMeaning,
);

export const egressPolicies = attribute(Type.Optional(Type.Array(policy)), policiesMeaning);

const property = 'The property of the data, where the data is an object.';

const placeholderRequest = object(
  {
    token_id: attribute(line({ minLength: 1, maxLength: 400 }), 'Whose value it stands for.'),
    property: attribute(nullable(line({ minLength: 1, maxLength: 100 })), property),
    form: attribute(
      nullable(Type.Enum(['key', 'number'])),
      '`key`, unless given, begins with `sr_`. `number` has 16 digits that pass for a card number of nobody.',
    ),
    expires_at: attribute(nullable(text), 'When it ends; with its token unless given.'),
  },
  { ...strict, title: 'PlaceholderRequest' },
);

const placeholder = object(
  {
    placeholder: attribute(text, 'What a program holds in the place of the value.'),
    token_id: attribute(text, placeholderRequest.properties.token_id),
    property: attribute(Type.Optional(text), property),
    hosts: attribute(list, 'The hosts to which the value may go.'),
    expires_at: attribute(Type.Optional(timestamp), 'When it ends.'),
  },
  { title: 'Placeholder' },
);

const authority = object(
  {
    certificate: attribute(
      text,
      'The certificate, in PEM. It is valid for these hosts and for no other.',
    ),
    hosts: attribute(list, 'The hosts whose connections the vault opens.'),
  },
  { title: 'EgressAuthority' },
);

const question = object(
  {
    application_id: attribute(text, 'Whose program sends the request.'),
    method: attribute(Type.Enum([...egressMethods]), 'The method of the request.'),
    url: attribute(line({ minLength: 1, maxLength: 2_000 }), 'Where it is sent.'),
    websocket: attribute(nullable(Type.Boolean()), 'True if it opens a WebSocket, by `GET`.'),
    token_id: attribute(nullable(text), 'A token whose placeholder is in it.'),
    placeholder: attribute(
      nullable(line({ minLength: 1, maxLength: 1_000 })),
      'A placeholder that is in it, in the place of a token.',
    ),
    place: attribute(nullable(line({ maxLength: 400 })), 'Where the placeholder stands.'),
    egress: attribute(
      egressRequest,
      'Policies to explain in the place of those of the application.',
    ),
  },
  { ...strict, title: 'EgressQuestion' },
);

const explanation = object(
  {
    outcome: attribute(
      Type.Enum(['sent', 'tunnelled', 'refused']),
      'What would happen to the request.',
    ),
    reason: attribute(text, 'Why.'),
    policy: attribute(Type.Optional(Type.Integer()), 'The policy that decides, counted from 0.'),
    approval: attribute(Type.Optional(Type.Enum([...approvals])), meanings.approval),
    waits: attribute(
      Type.Optional(Type.Boolean()),
      'Whether it would wait for the approval of a person, which nobody has given for it yet.',
    ),
    value: attribute(
      Type.Optional(
        object({
          sent: attribute(Type.Boolean(), 'Whether the value would be sent.'),
          reason: attribute(text, 'Why.'),
          places: attribute(
            Type.Optional(list),
            'The places of the policy where it may be, if the question names none.',
          ),
        }),
      ),
      'What would happen to the value.',
    ),
  },
  { title: 'EgressExplanation', description: 'Nothing is sent, and no value is opened.' },
);

/** @param application the id of an application that exists, in examples. */
export function explainingEgress(tools: EgressExplaining, application: string): Operation {
  return operation({
    id: 'explainEgress',
    method: 'POST',
    path: '/egress/explain',
    summary: 'Say what would happen to a request of a program, and to a value in it',
    permission: 'application:read',
    body: question,
    reply: { status: 200, body: explanation },
    problems: ['not_found'],
    example: {
      body: {
        application_id: application,
        method: 'POST',
        url: 'https://api.example.com/v1/charges',
        egress: [{ host: 'api.example.com', methods: ['POST'] }],
      },
      reply: { outcome: 'sent', policy: 0, approval: 'none', waits: false },
    },
    handle: ({ caller, body }) => explainEgress(tools, caller, body),
  });
}

export const egress: Resource<PlaceholderMaking> = {
  tag: 'Egress',
  description:
    'How a program uses values that it never sees: it holds placeholders, and the vault puts the values into its ' +
    'requests, to the hosts that the policies of its application name.',
  operations: (tools) => [
    operation({
      id: 'createPlaceholder',
      method: 'POST',
      path: '/placeholders',
      summary:
        'Make a placeholder for a value that the programs of the calling application may send',
      description:
        'No other application can use it. It is valid only while its token, the policy, and the application exist.',
      permission: 'proxy:invoke',
      alternative: 'token:use',
      kinds: ['private'],
      body: placeholderRequest,
      reply: { status: 201, body: placeholder },
      problems: ['not_found'],
      example: {
        body: { token_id: 'example-card', property: 'number' },
        reply: {
          placeholder: 'sr_…',
          token_id: 'example-card',
          property: 'number',
          hosts: ['api.example.com'],
        },
      },
      handle: ({ caller, body }) => makePlaceholder(tools, caller, body),
    }),
    operation({
      id: 'getEgressAuthority',
      method: 'GET',
      path: '/egress/authority',
      summary: 'Read the certificate authority that the programs of the calling application trust',
      permission: 'proxy:invoke',
      alternative: 'token:use',
      kinds: ['private'],
      reply: { status: 200, body: authority },
      example: { reply: { hosts: ['api.example.com'] } },
      handle: ({ caller }) => readAuthority(tools, caller),
    }),
  ],
};

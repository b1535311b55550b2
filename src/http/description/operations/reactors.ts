/** Operations on reactors, and calls of them. */
import { idOf, type OperationRow, type Section } from './operation-row.ts';

const reactor = idOf(7);
const request = 'ef3a1c2e-8b4d-4c6a-9e2f-0d1b2c3a4e5f';
const code = 'module.exports = async function (req) { return { raw: { last4: req.args.last4 } } }';

const removed = (id: string, more: Partial<OperationRow['example']> = {}): OperationRow => ({
  id,
  problems: ['gone'],
  example: { status: 410, ...more },
});

const raised = [
  'reactor_bad_request',
  'reactor_unauthenticated',
  'reactor_payment_required',
  'reactor_forbidden',
  'reactor_unprocessable',
  'reactor_rate_limited',
  'reactor_failed',
  'reactor_unavailable',
] as const;

export const reactors: Section = {
  tag: 'Reactors',
  description:
    'A reactor is code of yours that runs in the vault, in a sandbox, with values in the place of references to ' +
    'tokens.',
  operations: {
    'POST /reactors': {
      id: 'createReactor',
      description: 'Code that cannot be run is refused with 422.',
      problems: ['unprocessable'],
      example: {
        body: { name: 'Last four', code, configuration: { KEY: 'sk_test' } },
        reply: { id: reactor, name: 'Last four', state: 'active' },
      },
    },
    'GET /reactors': {
      id: 'listReactors',
      example: {
        query: { name: 'Last*' },
        reply: { pagination: { total_items: 1 }, data: [{ id: reactor }] },
      },
    },
    'GET /reactors/:id': {
      id: 'getReactor',
      example: { params: { id: reactor }, reply: { id: reactor, name: 'Last four' } },
    },
    'POST /reactors/:id/react': {
      id: 'react',
      description:
        'Expressions in the arguments are replaced by values. The code may also respond with a status, headers and a ' +
        'body of its own.',
      problems: [...raised],
      example: {
        params: { id: reactor },
        body: { args: { last4: "{{ order-4711-card | json: '$.number' | last4 }}" } },
        reply: { raw: { last4: '4242' } },
      },
    },
    'POST /reactors/:id/react-async': {
      id: 'reactAsync',
      example: {
        params: { id: reactor },
        body: { args: { last4: '4242' } },
        reply: { asyncReactorRequestId: request },
      },
    },
    'GET /reactors/:id/results/:requestId': {
      id: 'getReactorResult',
      description:
        '404 until the result is there, and again after 24 hours; then the response of the call, or the error that ' +
        'its code raised. Only the application or session that made the call reads it.',
      problems: [...raised],
      example: { params: { id: reactor, requestId: request }, status: 404 },
    },
    'GET /reactors/:id/logs': {
      id: 'listReactorLogs',
      description:
        'Lines may hold values, where the code writes them. They are stored for 24 hours.',
      example: { params: { id: reactor }, reply: { data: [] } },
    },
    'PUT /reactors/:id': {
      id: 'replaceReactor',
      description: 'Attributes that are absent take their defaults.',
      problems: ['unprocessable'],
      example: {
        params: { id: reactor },
        body: { name: 'Last four digits', code },
        reply: { id: reactor, name: 'Last four digits' },
      },
    },
    'PATCH /reactors/:id': {
      id: 'updateReactor',
      problems: ['unprocessable'],
      example: { params: { id: reactor }, body: { allowed_hosts: ['api.example.com'] } },
    },
    'DELETE /reactors/:id': { id: 'deleteReactor', example: { params: { id: reactor } } },
    'GET /reactor-formulas': removed('listReactorFormulas'),
    'POST /reactor-formulas': removed('createReactorFormula', { body: { name: 'f' } }),
    'GET /reactor-formulas/:id': removed('getReactorFormula', { params: { id: reactor } }),
    'PUT /reactor-formulas/:id': removed('replaceReactorFormula', {
      params: { id: reactor },
      body: { name: 'f' },
    }),
    'DELETE /reactor-formulas/:id': removed('deleteReactorFormula', { params: { id: reactor } }),
  },
};

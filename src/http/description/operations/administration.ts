/** Operations on proxies, the audit log and the tenant itself. */
import { idOf, type Section } from './operation-row.ts';

const proxy = idOf(6);
const destination_url = 'https://api.example.com/v1';

export const proxies: Section = {
  tag: 'Proxies',
  description:
    'A proxy sends requests to a destination of yours and writes values in the place of references to tokens, so ' +
    'that they never pass through your own servers.',
  operations: {
    'POST /proxies': {
      id: 'createProxy',
      problems: ['unprocessable'],
      example: {
        body: { name: 'Charge', destination_url, configuration: { API_KEY: 'sk_test' } },
        reply: { id: proxy, name: 'Charge', destination_url, require_auth: true, state: 'active' },
      },
    },
    'GET /proxies': {
      id: 'listProxies',
      example: {
        query: { name: 'Cha*' },
        reply: { pagination: { total_items: 1 }, data: [{ id: proxy }] },
      },
    },
    'GET /proxies/:id': {
      id: 'getProxy',
      example: { params: { id: proxy }, reply: { id: proxy, name: 'Charge' } },
    },
    'PUT /proxies/:id': {
      id: 'replaceProxy',
      description: 'Attributes that are absent take their defaults.',
      example: {
        params: { id: proxy },
        body: { name: 'Charge cards', destination_url },
        reply: { id: proxy, name: 'Charge cards' },
      },
    },
    'PATCH /proxies/:id': {
      id: 'updateProxy',
      example: { params: { id: proxy }, body: { timeout: 60 } },
    },
    'DELETE /proxies/:id': { id: 'deleteProxy', example: { params: { id: proxy } } },
  },
};

export const logs: Section = {
  tag: 'Logs',
  description:
    'Who did what, and to what. Entries are chained, so that a change to one can be proven.',
  operations: {
    'GET /logs': {
      id: 'listLogs',
      description: 'Follow `pagination.next`, or count `page` upwards until `data` is empty.',
      example: {
        query: { entity_type: 'token', entity_id: 'order-4711-card', size: '1' },
        reply: {
          pagination: { page_size: 1 },
          data: [{ entity_type: 'token', entity_id: 'order-4711-card' }],
        },
      },
    },
    'GET /logs/entity-types': { id: 'listLogEntityTypes', example: {} },
    'GET /logs/checkpoint': {
      id: 'getLogCheckpoint',
      description:
        'The attributes before `statement` are taken from it; the signature is over its text.',
      example: {},
    },
  },
};

export const tenant: Section = {
  tag: 'Tenant',
  description:
    'The tenant of the calling key: its name, its settings, and what the operator allows it.',
  operations: {
    'GET /tenants/self': { id: 'getTenant', example: {} },
    'PUT /tenants/self': {
      id: 'updateTenant',
      description: 'Settings that are absent stay.',
      example: {
        body: { name: 'Shop', settings: { deduplicate_tokens: 'true' } },
        reply: { name: 'Shop', settings: { deduplicate_tokens: 'true' } },
      },
    },
    'GET /tenants/self/reports/usage': { id: 'getUsage', example: {} },
    'DELETE /tenants/self': {
      id: 'deleteTenant',
      description: 'There is no way back.',
      example: {},
    },
  },
};

/** What is said about the routes that need no key. */
import type { OpenRoute } from '../protocol/route.ts';
import type { Schema } from '../schemas/shared.ts';

export interface OpenOperation {
  readonly id: string;
  readonly tag: string;
  readonly path: string;
  readonly summary: string;
  /** By status; of a response without a body `undefined`. */
  readonly responses: Readonly<Record<number, ResponseContent | undefined>>;
}

interface ResponseContent {
  readonly mediaType: string;
  readonly schema: Schema;
}

const text = (mediaType: string): ResponseContent => ({ mediaType, schema: { type: 'string' } });
const json = (schema: Schema): ResponseContent => ({ mediaType: 'application/json', schema });
const status = json({
  type: 'object',
  required: ['status'],
  properties: { status: { type: 'string', description: 'The state in words.' } },
});

interface OpenOperationRow extends Pick<OpenOperation, 'id' | 'responses'> {}

const rows: Readonly<Record<string, OpenOperationRow>> = {
  '/ping': { id: 'ping', responses: { 200: undefined } },
  '/healthz': { id: 'getHealth', responses: { 200: status } },
  '/readyz': { id: 'getReadiness', responses: { 200: status, 503: status } },
  '/keys/webhooks.v1.key': { id: 'getWebhookKey', responses: { 200: text('text/plain') } },
  '/openapi.json': {
    id: 'getDescription',
    responses: { 200: json({ type: 'object' }), 304: undefined },
  },
  '/docs': { id: 'getReference', responses: { 200: text('text/html'), 304: undefined } },
  '/metrics': { id: 'getMetrics', responses: { 200: text('text/plain') } },
};

export function openOperationsOf(routes: readonly OpenRoute[]): readonly OpenOperation[] {
  return routes.map(({ path, summary }) => {
    const id = `get${path.replaceAll(/\W+(\w)/g, (_, letter: string) => letter.toUpperCase())}`;
    const { [path]: row = { id, responses: { 200: undefined } } } = rows;
    return { ...row, tag: 'Service', path, summary };
  });
}

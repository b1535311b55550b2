/** Metrics on a separate address, for networks that only the operator reaches. They require no key. */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { second } from '../base/clock.ts';
import { reasonOf } from '../base/errors.ts';
import type { TenantId } from '../base/ids.ts';
import { createKeyedMutex } from '../base/keyed-mutex.ts';
import { nodeHttp } from '../base/node-http.ts';
import { tenantsAfter } from '../store/queries/tenants.ts';
import { tokenCountsByType } from '../store/queries/tokens.ts';
import { unverifiedColumns } from '../store/stored-row.ts';
import type { Config } from './config/config.ts';
import type { Process } from './process.ts';

type MetricsSource = Pick<Process, 'metrics' | 'store' | 'clock' | 'log'>;

export interface MetricsAddress {
  readonly url: string;
  /** Until then every response is 503. */
  show(vault: MetricsSource): void;
  close(): Promise<void>;
}

/** Of the tenants whose tokens are counted. */
const tenantsPerPage = 500;

const limits = { requestTimeout: 10 * second, headersTimeout: 10 * second, maxHeaderSize: 8_192 };

/** Rejects with the system's error, before anything is made, when the address cannot be listened on. */
export async function openMetricsAddress({
  host,
  port,
}: NonNullable<Config['metricsAddress']>): Promise<MetricsAddress> {
  let respond: Respond = async () => ({ status: 503 });
  const server = nodeHttp.createServer(limits, (request, response) => {
    void respond(request).then((reply) => send(response, reply));
  });
  server.listen({ host, port, exclusive: true });
  await once(server, 'listening');
  const bound = (server.address() as AddressInfo).port;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}/metrics`,
    show: (vault) => {
      respond = responder(vault);
    },
    close: async () => {
      server.close();
      server.closeAllConnections();
      if (server.listening) await once(server, 'close');
    },
  };
}

interface MetricsReply {
  readonly status: number;
  readonly text?: string;
  readonly mediaType?: string;
}

type Respond = (request: Pick<IncomingMessage, 'method' | 'url'>) => Promise<MetricsReply>;

function responder({ metrics, store, clock, log }: MetricsSource): Respond {
  /** A count reads all tokens, so there is only one at a time. */
  const inTurn = createKeyedMutex();

  const countTokens = () =>
    inTurn('tokens', async () => {
      let text = tokensHead;
      for await (const tenant_id of liveTenants(store)) {
        const now = clock.now();
        const counts = await store.scan(
          tokenCountsByType(tenant_id, { now, activeSince: now }),
          'vault',
        );
        const count = counts.reduce((sum, { count: ofType }) => sum + ofType, 0);
        text += `strongroom_tokens{tenant="${tenant_id}"} ${count}\n`;
      }
      return text;
    });

  return async ({ method, url = '' }) => {
    const [path, query] = url.split('?', 2);
    if (path !== '/metrics') return { status: 404 };
    if (method !== 'GET' && method !== 'HEAD') return { status: 405 };
    try {
      const { text, mediaType } = await metrics.expose();
      const tokens = query === 'tokens=by-tenant' ? await countTokens() : '';
      return { status: 200, text: text + tokens, mediaType };
    } catch (error) {
      log.error('metrics could not be shown', { reason: reasonOf(error) });
      return { status: 503 };
    }
  };
}

/** Page by page: the caller needs all of them, but not in memory at once. */
async function* liveTenants(store: MetricsSource['store']): AsyncGenerator<TenantId> {
  let after: TenantId | undefined;
  for (;;) {
    const page = await store.select(tenantsAfter(after, tenantsPerPage));
    for (const row of page) if (unverifiedColumns(row).deleted_at === null) yield row.tenant_id;
    after = page.at(-1)?.tenant_id;
    if (page.length < tenantsPerPage) return;
  }
}

const tokensHead =
  '# HELP strongroom_tokens Tokens that have not expired, by tenant\n# TYPE strongroom_tokens gauge\n';

function send(response: ServerResponse, { status, text = '', mediaType }: MetricsReply): void {
  const headers = { 'content-length': Buffer.byteLength(text), 'cache-control': 'no-store' };
  response.writeHead(status, { ...headers, ...(mediaType && { 'content-type': mediaType }) });
  response.end(response.req.method === 'HEAD' ? undefined : text);
}

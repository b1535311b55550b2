/** A stop that loses nothing: requests in flight get their response, idle connections are closed, slow ones are cut. */
import type { FastifyInstance } from 'fastify';

/**
 * From the first moment of a close each response ends its connection, which would otherwise be kept
 * alive, and the server with it. A client that is still sending after `patienceMs` is cut off: Node
 * times no request out any more once its server closes.
 */
export function stopGracefully(app: FastifyInstance, patienceMs: number): AbortSignal {
  const closing = new AbortController();
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (closing.signal.aborted) reply.header('connection', 'close');
    done(null, payload);
  });
  app.addHook('preClose', (done) => {
    closing.abort();
    const deadline = setTimeout(() => app.server.closeAllConnections(), patienceMs);
    app.server.once('close', () => clearTimeout(deadline));
    done();
  });
  return closing.signal;
}

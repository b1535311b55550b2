/** Who sends a request, by its headers: the sender that limits count, and the caller once it is admitted. */
import type { Caller } from '../rules/caller.ts';
import { originOf } from './begin-response.ts';
import type { Admit, Applicant } from './limits/admission.ts';
import type { Sender } from './limits/rate-limit.ts';
import type { Exchange } from './protocol/exchange.ts';
import type { ServiceHeaders } from './protocol/headers.ts';
import type { Route } from './protocol/route.ts';

export interface RequestCallers {
  senderOf(exchange: Exchange): Sender;
  /** The caller as of now, however often this is asked; rejects as {@link Admit} does. */
  admit(route: Route, exchange: Exchange, count?: Applicant['count']): Promise<Caller>;
}

export interface RequestCallerOptions {
  readonly headers: ServiceHeaders;
  readonly admit: Admit;
}

export function createRequestCallers({ headers, admit }: RequestCallerOptions): RequestCallers {
  return {
    senderOf: (exchange) => {
      const key = headers.read(exchange.headers, 'api-key');
      return { address: exchange.address, key, holder: exchange.caller };
    },
    admit: (route, exchange, count) => {
      const key = headers.read(exchange.headers, 'api-key');
      return admit(route, { key, origin: originOf(exchange), count });
    },
  };
}

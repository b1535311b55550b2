/** All sections of the reference, in its order; their examples work in this order, too. */
import { applications, clientKeys, sessions } from './access.ts';
import { logs, proxies, tenant } from './administration.ts';
import type { Section } from './operation-row.ts';
import { reactors } from './reactors.ts';
import { enrichments, tokenIntents, tokenization, tokens } from './tokens.ts';
import { webhooks } from './webhooks.ts';

export const sections: readonly Section[] = [
  tokens,
  tokenization,
  tokenIntents,
  enrichments,
  applications,
  sessions,
  proxies,
  reactors,
  clientKeys,
  webhooks,
  logs,
  tenant,
];

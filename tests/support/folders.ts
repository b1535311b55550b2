/** The folders of `src`: their ranks, and the imports that are allowed between folders of one rank. */
import type { Doors, Ranks } from './tidy.ts';

export const ranks: Ranks = {
  lib: 0,
  crypto: 1,
  expressions: 1,
  outbound: 1,
  store: 1,
  rules: 2,
  transforms: 2,
  values: 3,
  vault: 4,
  gate: 5,
  http: 6,
  jobs: 6,
  config: 6,
  'config.ts': 7,
  'open-vault.ts': 8,
  'process.ts': 9,
  'answering.ts': 10,
  'delivering.ts': 10,
  serve: 11,
  cli: 12,
};

const storeEngine = ['store', 'store/commit', 'store/migrations'];

/** Between folders of one rank. Under `vault`, these are all that a noun knows of another. */
export const doors: Doors = {
  'lib/directories': ['lib'],
  'lib/log-chain': ['lib'],
  'lib/telemetry': ['lib'],
  'expressions/filters': ['expressions/evaluation'],
  expressions: ['expressions/evaluation', 'expressions/filters'],
  'expressions/request-texts': ['expressions', 'expressions/evaluation'],
  'store/commit': ['store'],
  'store/queries': ['store'],
  'store/sqlite': storeEngine,
  'store/postgres': storeEngine,
  'store/open': ['store', 'store/migrations', 'store/sqlite', 'store/postgres'],
  'cli/doctor': ['cli/terminal'],
  'cli/logs': ['cli/terminal'],
  cli: ['cli/doctor', 'cli/logs', 'cli/terminal'],
  'vault/enrichments': ['vault/tokens'],
  'vault/logs': ['vault/token-intents'],
  'vault/proxy-calls': ['vault/client-keys', 'vault/proxies', 'vault/tokenization', 'vault/tokens'],
  'vault/sessions': ['vault/applications'],
  'vault/tenants': ['vault/applications', 'vault/logs'],
  'vault/events': ['vault/applications', 'vault/proxies'],
  'vault/webhooks': ['vault/events'],
  'vault/deliveries': ['vault/events', 'vault/webhooks'],
  'vault/tokenization': ['vault/token-intents', 'vault/tokens'],
  'vault/tokens': ['vault/logs', 'vault/token-intents', 'vault/token-search'],
  'http/protocol': ['http/schemas'],
  'http/limits': ['http/protocol', 'http/schemas'],
  'http/proxy': ['http/limits', 'http/protocol'],
  http: ['http/limits', 'http/protocol', 'http/proxy'],
  'http/description': [
    'http/description/operations',
    'http/protocol',
    'http/proxy',
    'http/schemas',
  ],
  'http/description/page': ['http/description', 'http/protocol', 'http/schemas'],
  'http/routes': ['http/description', 'http/description/page', 'http/protocol', 'http/schemas'],
};

export const filesPerFolderMax = 20;

/** The service itself, for clients without a key: probes, the description of the interface, metrics, one public key. */

import type { SigningPairs } from '../access/keyrings/signing-pairs.ts';
import { second } from '../base/clock.ts';
import { VaultError } from '../base/errors.ts';
import { ExpiringMap } from '../base/expiring-map.ts';
import type { Exposition, Metrics } from '../base/telemetry/metrics.ts';
import type { OpenBrowserFiles } from '../browser/files.ts';
import { FixedBody } from '../http/protocol/fixed-body.ts';
import { jsonMediaType } from '../http/protocol/request-context.ts';
import { sha256 } from '../keys/digest.ts';
import { assetOperations } from './assets.ts';
import type { OpenOperation, Section } from './declaration/operation.ts';
import { type FieldsTools, fieldsOperations } from './fields.ts';
import { referencePage } from './reference-page.ts';

/** The input of the description of the interface. */
export interface DescribedApi {
  readonly sections: readonly Section[];
  /** What needs no key. */
  readonly open: readonly OpenOperation[];
  /** The service's own, such as `SVC`. */
  readonly headerPrefix: string;
  readonly version: string;
}

export interface ServiceTools extends FieldsTools {
  readonly signingPairs: Pick<SigningPairs, 'publicKey' | 'own'>;
  readonly metrics: Metrics;
  /** Whether metrics are shown here; otherwise they have an address of their own. */
  readonly showsMetrics: boolean;
  /** The OpenAPI document. Loads its modules on the first request for it, so that no start waits for them. */
  readonly describe: (api: DescribedApi) => Promise<object>;
}

const textAs = (mediaType: string) => ({ mediaType, schema: { type: 'string' } });
const jsonOf = (schema: object) => ({ mediaType: 'application/json', schema });
const status = jsonOf({
  type: 'object',
  required: ['status'],
  properties: { status: { type: 'string', description: 'The state in words.' } },
});

/** @param sections what needs a key, which the description describes as well. */
export function serviceOperations(
  tools: ServiceTools,
  sections: readonly Section[],
): readonly OpenOperation[] {
  const { metrics, showsMetrics } = tools;
  const operations: readonly OpenOperation[] = [
    ...healthOperations(tools),
    ...webhookKeyOperations(tools),
    ...assetOperations(tools.browserFiles),
    ...fieldsOperations(tools),
    ...descriptionOperations(tools.browserFiles, () =>
      tools.describe({ ...tools, sections, open: operations }),
    ),
    ...(showsMetrics ? [metricsOperation(metrics)] : []),
  ];
  return operations;
}

const pairForm = /^[1-9][0-9]{0,8}$/;

function webhookKeyOperations({
  signingPairs,
}: Pick<ServiceTools, 'signingPairs'>): readonly OpenOperation[] {
  const show = async (pair: number) => {
    const body = await signingPairs.publicKey(pair);
    if (body !== undefined) return { status: 200, body, mediaType: 'text/plain' };
    throw new VaultError('not_found', { public: 'There is no key of that version.' });
  };
  const replies = { 200: textAs('text/plain') };
  return [
    {
      id: 'getWebhookKey',
      path: '/keys/webhooks.v1.key',
      summary: 'Retrieve the public key that verifies webhooks',
      replies,
      // The vault makes this one at its first use.
      handle: () => show(1),
    },
    {
      id: 'getWebhookKeyVersion',
      path: '/keys/webhooks.v:version.key',
      summary: 'Retrieve the public key of a version, which verifies webhooks',
      params: { version: 'The number in `SVC-SIGNATURE-VERSION`.' },
      replies,
      problems: ['not_found'],
      // Each version that is not in memory is looked up.
      isLimited: true,
      handle: async ({ version = '' }) => {
        if (pairForm.test(version)) return show(Number(version));
        throw new VaultError('not_found', { public: 'There is no key of that version.' });
      },
    },
  ];
}

/** How long a verdict is reused: a probe writes to the disk, and any client may send one. */
const verdictMs = second;

/**
 * A vault whose disk is nearly full still reads and deletes, so it stays ready: otherwise clients could do neither.
 * `undefined` if the storage cannot be used.
 */
type Readiness = 'ready' | 'ready, creates refused' | undefined;

export function healthOperations({
  store,
  clock,
}: Pick<ServiceTools, 'store' | 'clock'>): readonly OpenOperation[] {
  const verdicts = new ExpiringMap<'ready', Promise<Readiness>>({
    clock,
    ageMsMax: verdictMs,
    entriesMax: 1,
  });
  const ready = (): Promise<Readiness> => {
    const known = verdicts.get('ready');
    if (known) return known;
    const verdict = store.ping().then(
      ({ isShort }) => (isShort ? 'ready, creates refused' : 'ready'),
      () => undefined,
    );
    verdicts.set('ready', verdict);
    return verdict;
  };
  return [
    {
      id: 'ping',
      path: '/ping',
      summary: 'Return 200',
      replies: { 200: undefined },
      handle: async () => ({ status: 200 }),
    },
    {
      id: 'getHealth',
      path: '/healthz',
      summary: 'Check that the process runs',
      replies: { 200: status },
      handle: async () => ({ status: 200, body: { status: 'alive' } }),
    },
    {
      id: 'getReadiness',
      path: '/readyz',
      summary: 'Check that the vault can read and write its storage',
      replies: { 200: status, 503: status },
      handle: async () => {
        const status = await ready();
        return status
          ? { status: 200, body: { status } }
          : { status: 503, body: { status: 'storage unavailable' } };
      },
    },
  ];
}

function descriptionOperations(
  browserFiles: OpenBrowserFiles,
  describe: () => Promise<object>,
): readonly OpenOperation[] {
  return [
    {
      id: 'getDescription',
      path: '/openapi.json',
      summary: 'Read this interface as an OpenAPI document',
      replies: { 200: jsonOf({ type: 'object' }), 304: undefined },
      isLimited: true,
      handle: keptReply(async () => ({
        text: JSON.stringify(await describe()),
        mediaType: jsonMediaType,
      })),
    },
    {
      id: 'getReference',
      path: '/docs',
      summary: 'Read this interface as a page',
      replies: { 200: textAs('text/html'), 304: undefined },
      isLimited: true,
      handle: keptReply(async () => {
        const { html, headers } = referencePage(await browserFiles());
        return { text: html, mediaType: 'text/html; charset=utf-8', headers };
      }),
    },
  ];
}

/** Made once, and never again while the process runs. */
interface DescriptionReply {
  readonly body: FixedBody;
  readonly mediaType: string;
  readonly headers: Readonly<Record<string, string>>;
}

interface DescriptionText
  extends Pick<DescriptionReply, 'mediaType'>,
    Partial<Pick<DescriptionReply, 'headers'>> {
  readonly text: string;
}

function keptReply(make: () => Promise<DescriptionText>): OpenOperation['handle'] {
  let stored: Promise<DescriptionReply> | undefined;
  return async () => {
    stored ??= make().then(({ text, mediaType, headers = {} }) => {
      const tag = sha256(text).toString('base64url');
      return { body: new FixedBody(Buffer.from(text), tag), mediaType, headers };
    });
    try {
      return { status: 200, ...(await stored) };
    } catch (error) {
      // Files that could not be read may be there for the next request.
      stored = undefined;
      throw error;
    }
  };
}

/** How often metrics are made in {@link metricsWindowMs}; beyond it they are up to {@link metricsStaleMsMax} old. */
export const metricsMadeMax = 200;
export const metricsWindowMs = 10 * second;
const metricsStaleMsMax = second;

/** Requests from many addresses together cannot make the metrics more often than that. */
function metricsOperation(metrics: Metrics): OpenOperation {
  let latest: Promise<Exposition> | undefined;
  let latestAt = 0;
  let made = 0;
  let windowEnd = 0;
  const expose = () => {
    const now = performance.now();
    if (now >= windowEnd) {
      windowEnd = now + metricsWindowMs;
      made = 0;
    }
    const isUsable = made >= metricsMadeMax && now - latestAt < metricsStaleMsMax;
    if (latest === undefined || !isUsable) {
      made += 1;
      latestAt = now;
      latest = metrics.expose();
      latest.catch(() => {
        latest = undefined;
      });
    }
    return latest;
  };
  return {
    id: 'getMetrics',
    path: '/metrics',
    summary: 'Metrics in the format of Prometheus',
    replies: { 200: textAs('text/plain') },
    isLimited: true,
    isExact: true,
    handle: async () => {
      const { text, mediaType } = await expose();
      return { status: 200, body: text, mediaType };
    },
  };
}

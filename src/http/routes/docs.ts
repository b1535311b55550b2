/** Routes that describe the service: the OpenAPI document, a page for people, and its metrics. */
import { sha256 } from '../../crypto/digest.ts';
import { second } from '../../lib/clock.ts';
import type { Exposition, Metrics } from '../../lib/telemetry/metrics.ts';
import type { Description } from '../description/page/description.ts';
import { jsonMediaType } from '../protocol/exchange.ts';
import type { OpenRoute, Route } from '../protocol/route.ts';

export interface DocsOptions {
  readonly routes: readonly Route[];
  readonly openRoutes: readonly OpenRoute[];
  readonly headerPrefix: string;
  readonly version: string;
  readonly metrics: Metrics;
  /** Whether metrics are shown here; otherwise they have an address of their own. */
  readonly showsMetrics: boolean;
}

/** Made once, and never again while the process runs. */
interface DescriptionReply {
  readonly body: Uint8Array;
  readonly etag: string;
  readonly mediaType: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** What the description is made of is loaded with the first request for it: no start waits for that. */
export function docsRoutes({ metrics, showsMetrics, ...described }: DocsOptions): OpenRoute[] {
  let description: Promise<Description> | undefined;
  const describe = () => {
    const openRoutes = [...described.openRoutes, ...own];
    description ??= import('../description/page/description.ts').then(({ createDescription }) =>
      createDescription({ ...described, openRoutes }),
    );
    return description;
  };
  const own: OpenRoute[] = [
    {
      path: '/openapi.json',
      summary: 'This interface as an OpenAPI document',
      isLimited: true,
      handle: keptReply(async () => {
        const { document } = await describe();
        return { text: JSON.stringify(document), mediaType: jsonMediaType };
      }),
    },
    {
      path: '/docs',
      summary: 'This interface as a page',
      isLimited: true,
      handle: keptReply(async () => {
        const { html, contentSecurityPolicy } = (await describe()).page();
        const headers = { 'content-security-policy': contentSecurityPolicy };
        return { text: html, mediaType: 'text/html; charset=utf-8', headers };
      }),
    },
    ...(showsMetrics ? [metricsRoute(metrics)] : []),
  ];
  return own;
}

interface DescriptionText
  extends Pick<DescriptionReply, 'mediaType'>,
    Partial<Pick<DescriptionReply, 'headers'>> {
  readonly text: string;
}

function keptReply(make: () => Promise<DescriptionText>): OpenRoute['handle'] {
  let stored: Promise<DescriptionReply> | undefined;
  return async () => {
    stored ??= make().then(({ text, mediaType, headers = {} }) => {
      const body = Buffer.from(text);
      return { body, etag: `"${sha256(text).toString('base64url')}"`, mediaType, headers };
    });
    return { status: 200, ...(await stored) };
  };
}

/** How often metrics are made in {@link metricsWindowMs}; beyond it they are up to {@link metricsStaleMsMax} old. */
export const metricsMadeMax = 200;
export const metricsWindowMs = 10 * second;
const metricsStaleMsMax = second;

/** Requests from many addresses together cannot make the metrics more often than that. */
function metricsRoute(metrics: Metrics): OpenRoute {
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
    path: '/metrics',
    summary: 'Metrics in the format of Prometheus',
    isLimited: true,
    isExact: true,
    handle: async () => {
      const { text, mediaType } = await expose();
      return { status: 200, body: text, mediaType };
    },
  };
}

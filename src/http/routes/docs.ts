/** Routes that describe the service: the OpenAPI document, a page for people, and its metrics. */
import type { Metrics } from '../../lib/telemetry/metrics.ts';
import type { Description } from '../description/page/description.ts';
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

/** What the description is made of is loaded with the first request for it: no start waits for that. */
export function docsRoutes({ metrics, showsMetrics, ...described }: DocsOptions): OpenRoute[] {
  let description: Description | undefined;
  const describe = async () => {
    const { createDescription } = await import('../description/page/description.ts');
    const openRoutes = [...described.openRoutes, ...own];
    description ??= createDescription({ ...described, openRoutes });
    return description;
  };
  const own: OpenRoute[] = [
    {
      path: '/openapi.json',
      summary: 'This interface as an OpenAPI document',
      handle: async () => ({ status: 200, body: (await describe()).document }),
    },
    {
      path: '/docs',
      summary: 'This interface as a page',
      handle: async () => {
        const { html, contentSecurityPolicy } = (await describe()).page();
        return {
          status: 200,
          body: html,
          mediaType: 'text/html; charset=utf-8',
          headers: { 'content-security-policy': contentSecurityPolicy },
        };
      },
    },
    ...(showsMetrics ? [metricsRoute(metrics)] : []),
  ];
  return own;
}

function metricsRoute(metrics: Metrics): OpenRoute {
  return {
    path: '/metrics',
    summary: 'Metrics in the format of Prometheus',
    handle: async () => {
      const { text, mediaType } = await metrics.expose();
      return { status: 200, body: text, mediaType };
    },
  };
}

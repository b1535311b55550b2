/** Routes that describe the service: the OpenAPI document, a page for people, and its metrics. */
import type { Metrics } from '../../lib/telemetry/metrics.ts';
import { openapiOf } from '../description/openapi.ts';
import { operationsOf } from '../description/operation.ts';
import { docsPage } from '../description/page/page.ts';
import { contentSecurityPolicy } from '../description/page/style.ts';
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

export function docsRoutes({ metrics, showsMetrics, ...described }: DocsOptions): OpenRoute[] {
  let document: object | undefined;
  let page: string | undefined;
  const describe = () => {
    document ??= openapiOf({ ...described, openRoutes: [...described.openRoutes, ...own] });
    return document;
  };
  const own: OpenRoute[] = [
    {
      path: '/openapi.json',
      summary: 'This interface as an OpenAPI document',
      handle: async () => ({ status: 200, body: describe() }),
    },
    {
      path: '/docs',
      summary: 'This interface as a page',
      handle: async () => {
        page ??= docsPage({
          document: describe(),
          operations: operationsOf(described.routes),
        });
        return {
          status: 200,
          body: page,
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

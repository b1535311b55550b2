/** Headers that no one but the vault may send from its host. */

/** What speaks for the whole host, or lets caches between give the response to others, is the vault's to say. */
export const headersOfHost: ReadonlySet<string> = new Set([
  ...['strict-transport-security', 'public-key-pins', 'public-key-pins-report-only', 'alt-svc'],
  ...['clear-site-data', 'service-worker-allowed', 'origin-agent-cluster', 'accept-ch'],
  ...['critical-ch', 'nel', 'report-to', 'reporting-endpoints'],
  ...['cache-control', 'expires', 'pragma', 'surrogate-control', 'cdn-cache-control'],
]);

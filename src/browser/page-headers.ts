/** Security headers of pages that the vault serves: what such a page may load, call, and do, and who may show it. */
import type { BrowserFile } from './files.ts';

export interface PagePolicy {
  /** All scripts and style sheets of the page: it runs and applies nothing else. */
  readonly files: readonly BrowserFile[];
  /** Digests of style elements in the page (`sha256-…`). */
  readonly styleDigests?: readonly string[];
  /** Where scripts may send requests: the vault alone unless more is named. */
  readonly connect?: readonly string[];
  /** Further sources of images; `data:` and the vault are always among them. */
  readonly images?: readonly string[];
  /** Pages of the vault in frames of this one. */
  readonly frames?: readonly string[];
  /** Names of the policies that may make HTML; without one, scripts cannot write HTML at all. */
  readonly trustedTypes?: readonly string[];
  /** The origins of pages that may show this page in a frame: none unless named. */
  readonly frameAncestors?: readonly string[];
  /** Features of the browser that the page uses; every other one is off. */
  readonly features?: readonly Feature[];
}

/** Features that pages of the vault do not get unless they name them. */
const features = [
  ...['accelerometer', 'autoplay', 'camera', 'clipboard-read', 'clipboard-write'],
  ...['display-capture', 'encrypted-media', 'fullscreen', 'geolocation', 'gyroscope', 'hid'],
  ...['identity-credentials-get', 'idle-detection', 'local-fonts', 'magnetometer', 'microphone'],
  ...['midi', 'payment'],
  ...['publickey-credentials-create', 'publickey-credentials-get', 'screen-wake-lock', 'serial'],
  ...['storage-access', 'usb', 'window-management', 'xr-spatial-tracking'],
] as const;
type Feature = (typeof features)[number];

export function pageHeaders(policy: PagePolicy): Readonly<Record<string, string>> {
  const { frameAncestors = [] } = policy;
  return {
    'content-security-policy': contentSecurityPolicyOf(policy),
    'permissions-policy': features
      .map((name) => `${name}=(${policy.features?.includes(name) ? 'self' : ''})`)
      .join(', '),
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    // A page that isolates itself may show this one, which loads nothing from elsewhere.
    'cross-origin-embedder-policy': 'require-corp',
    'cross-origin-resource-policy': frameAncestors.length > 0 ? 'cross-origin' : 'same-origin',
    'origin-agent-cluster': '?1',
    // The older header knows no list of origins.
    ...(frameAncestors.length === 0 && { 'x-frame-options': 'DENY' }),
  };
}

function contentSecurityPolicyOf({
  files,
  styleDigests = [],
  connect = [],
  images = [],
  frames = [],
  trustedTypes = [],
  frameAncestors = [],
}: PagePolicy): string {
  const digests = (kind: string) =>
    files.filter(({ name }) => name.endsWith(kind)).map(({ integrity }) => integrity);
  const styles = [...digests('.css'), ...styleDigests];
  const directives = {
    'default-src': [],
    'script-src': quoted(digests('.js')),
    // By a digest, browsers find style elements, but not files.
    'style-src': [...(digests('.css').length > 0 ? ["'self'"] : []), ...quoted(styles)],
    'connect-src': ["'self'", ...connect],
    'img-src': ["'self'", 'data:', ...images],
    'font-src': ['data:'],
    'frame-src': frames,
    'base-uri': [],
    'form-action': [],
    'frame-ancestors': frameAncestors,
    'require-trusted-types-for': ["'script'"],
    'trusted-types': trustedTypes,
  };
  return Object.entries(directives)
    .map(([name, values]) => `${name} ${values.length > 0 ? values.join(' ') : "'none'"}`)
    .join('; ');
}

function quoted(digests: readonly string[]): string[] {
  return digests.map((digest) => `'${digest}'`);
}

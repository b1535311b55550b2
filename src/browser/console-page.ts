/** The page of the console: the same for each of its paths, because what it shows is decided in the browser. */

import { FixedBody } from '../http/protocol/fixed-body.ts';
import type { OpenRoute } from '../http/protocol/route.ts';
import { sha256 } from '../keys/digest.ts';
import type { BrowserFiles, OpenBrowserFiles } from './files.ts';
import { pageHeaders } from './page-headers.ts';

/** Drawn for the console; a page that loads nothing from elsewhere has it inside. */
const icon =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#2f5bea"/>' +
  '<path d="M10 14v-2.5a6 6 0 0 1 12 0V14" fill="none" stroke="#fff" stroke-width="2.4"/>' +
  '<rect x="7.5" y="13.5" width="17" height="12" rx="3" fill="#fff"/>' +
  '<circle cx="16" cy="19.5" r="2.4" fill="#2f5bea"/></svg>';

const paths = ['/console', '/console/*'];

/** For readers without a key: the page holds nothing of a tenant. */
export function consolePageRoutes(open: OpenBrowserFiles): readonly OpenRoute[] {
  let page: ReturnType<typeof pageOf> | undefined;
  const handle: OpenRoute['handle'] = async () => {
    page ??= pageOf(await open());
    return { status: 200, mediaType: 'text/html; charset=utf-8', ...page };
  };
  return paths.map((path) => ({ path, isLimited: true, handle }));
}

function pageOf(files: BrowserFiles) {
  const [style, script, editor] = ['console/main.css', 'console/main.js', 'editor/editor.js'].map(
    (name) => files.named(name),
  ) as [
    ReturnType<BrowserFiles['named']>,
    ReturnType<BrowserFiles['named']>,
    ReturnType<BrowserFiles['named']>,
  ];
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<meta name="strongroom-editor" content="${editor.path} ${editor.integrity}">
<title>Strongroom</title>
<link rel="icon" href="data:image/svg+xml;base64,${Buffer.from(icon).toString('base64')}">
${style.element}
${script.element}
</head>
<body>
<div id="app"></div>
<noscript>The console needs JavaScript.</noscript>
</body>
</html>
`;
  return {
    body: new FixedBody(Buffer.from(html), sha256(html).toString('base64url')),
    headers: pageHeaders({
      files: [style, script, editor],
      features: ['clipboard-write', 'publickey-credentials-create', 'publickey-credentials-get'],
      // Its one script is loaded where code is edited; see packages/console/src/ui/code-editor.tsx.
      trustedTypes: ['strongroom-editor'],
    }),
  };
}

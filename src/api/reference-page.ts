/** The page at `/docs`: the frame in which the script of `packages/reference` shows the description of the vault. */
import type { BrowserFiles } from '../browser/files.ts';
import { pageHeaders } from '../browser/page-headers.ts';

export interface ReferencePage {
  readonly html: string;
  readonly headers: Readonly<Record<string, string>>;
}

export function referencePage(browserFiles: BrowserFiles): ReferencePage {
  const files = ['reference/reference.css', 'reference/reference.js'].map(browserFiles.named);
  return {
    html: referenceHtml(
      files.map(({ element }) => element),
      '/openapi.json',
    ),
    headers: pageHeaders({ files, features: ['clipboard-write'] }),
  };
}

/**
 * What is in the root until the script has read the description is painted at once.
 *
 * @param elements of the script and the style sheet.
 * @param document where the description is.
 */
function referenceHtml(elements: readonly string[], document: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Strongroom API reference</title>
<link rel="icon" href="data:,">
${elements.join('\n')}
</head>
<body>
<div id="reference" data-document="${document}">
<header class="bar"><a class="brand" href="#introduction">Strongroom <span>API reference</span></a></header>
<main><p>Reading <a href="${document}">the description of the API</a>.</p></main>
</div>
<noscript>This page needs JavaScript. The same as an OpenAPI document: <a href="${document}">${document}</a>.</noscript>
</body>
</html>
`;
}

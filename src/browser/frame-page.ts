/** The page of one field. What it holds is decided by the page that shows it, and nothing of it leaves the vault. */
import { FixedBody } from '../http/protocol/fixed-body.ts';
import { sha256 } from '../keys/digest.ts';
import { patternOf } from '../rules/page-origins.ts';
import type { BrowserFiles } from './files.ts';
import { pageHeaders } from './page-headers.ts';

export interface FramePage {
  readonly body: FixedBody;
  readonly mediaType: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface FrameSetting {
  /** Of the pages that may show it, and speak with it. */
  readonly origins: readonly string[];
  /** With which its requests are sent. */
  readonly headerPrefix: string;
}

export function framePage(
  browserFiles: BrowserFiles,
  { origins, headerPrefix }: FrameSetting,
): FramePage {
  const files = ['fields/frame.css', 'fields/frame.js'].map((name) => browserFiles.named(name));
  // No character of an origin, or of the pattern, ends an attribute.
  const html = `<!doctype html>
<html lang="en" data-origins="${patternOf(origins)}" data-prefix="${headerPrefix}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Secure field</title>
${files.map(({ element }) => element).join('\n')}
</head>
<body></body>
</html>
`;
  return {
    body: new FixedBody(Buffer.from(html), sha256(html).toString('base64url')),
    mediaType: 'text/html; charset=utf-8',
    headers: pageHeaders({ files, frameAncestors: origins, features: ['clipboard-write'] }),
  };
}

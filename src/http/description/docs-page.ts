/** The page at `/docs`: the OpenAPI document as one plain HTML page, without scripts or foreign assets. */

interface DocumentedOperation {
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly required: boolean;
  }[];
  readonly requestBody?: {
    readonly content: Readonly<Record<string, { readonly schema: object }>>;
  };
  readonly responses: Readonly<Record<string, object>>;
}

const style = `
  :root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
  body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
  article { border-top: 1px solid #8886; padding: 1rem 0; }
  code, pre { font-family: ui-monospace, monospace; font-size: 0.9em; }
  pre { overflow: auto; padding: 0.75rem; background: #8881; border-radius: 4px; }
  .method { display: inline-block; min-width: 4.5rem; font-weight: 700; }
`;

/** @param document what `openapiOf` gives. */
export function docsPage(document: object): string {
  const { paths, info } = document as {
    readonly info: { readonly title: string; readonly version: string };
    readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentedOperation>>>>;
  };
  const articles = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => articleOf(method, path, operation)),
  );
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(info.title)} ${escapeHtml(info.version)}</title>
<style>${style}</style>
</head>
<body>
<h1>${escapeHtml(info.title)} ${escapeHtml(info.version)}</h1>
<p>The same as a machine reads it: <a href="/openapi.json">/openapi.json</a></p>
${articles.join('\n')}
</body>
</html>
`;
}

function articleOf(method: string, path: string, operation: DocumentedOperation): string {
  const { summary, description = '', parameters = [], requestBody } = operation;
  const named = parameters
    .filter(({ name }) => name)
    .map(
      ({ name, in: place, required }) =>
        `<li><code>${escapeHtml(name)}</code> in the ${place}${required ? ', required' : ''}</li>`,
    );
  const bodies = Object.entries(requestBody?.content ?? {}).map(([mediaType, { schema }]) => {
    const shape = escapeHtml(JSON.stringify(schema, null, 2));
    return `<details><summary>Body, <code>${mediaType}</code></summary><pre>${shape}</pre></details>`;
  });
  return `<article>
<h2><span class="method">${method.toUpperCase()}</span> <code>${escapeHtml(path)}</code></h2>
<p>${escapeHtml(summary)}. ${escapeHtml(description)}</p>
${named.length > 0 ? `<ul>${named.join('')}</ul>` : ''}
${bodies.join('')}
</article>`;
}

function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

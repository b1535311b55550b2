/** The reference at `/docs`: one plain HTML page without scripts or foreign assets, to be searched by the browser. */
import type { PublishedOperation } from '../openapi/published-operation.ts';
import type { Document } from './document.ts';
import { expressionsSection } from './expressions.ts';
import { anchorOf, Html, heading, html, link, prose } from './html.ts';
import { operationSection, type ShownOperation, schemaSection } from './operation-section.ts';
import { authenticationSection, conventionsSection, limitsSection } from './overview.ts';
import { schemaAnchor } from './schema-table.ts';
import { style } from './style.ts';
import { tokenTypesSection } from './token-types.ts';

export interface PageOptions {
  /** What `openapiOf` gives. */
  readonly document: object;
  readonly operations: readonly PublishedOperation[];
}

export function docsPage({ document: given, operations }: PageOptions): string {
  const document = given as Document;
  const { info } = document;
  const shown = shownIn(document, operations);
  const tags = document.tags.map((tag) => ({
    ...tag,
    operations: shown.filter(({ described }) => described.tags[0] === tag.name),
  }));
  const schemas = Object.keys(document.components.schemas);
  const title = `${info.title} ${info.version}`;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}: reference</title>
<style>${new Html(style)}</style>
</head>
<body>
<nav aria-label="Reference">
<a class="skip" href="#content">Skip to the content</a>
<ul>
${guides.map(([anchor, text]) => html`<li>${link(anchor, text)}</li>`)}
${tags.map(({ name, operations: own }) => navigationOf(name, own))}
<li>${link('schemas', 'Schemas')}</li>
</ul>
</nav>
<main id="content">
<h1>${title}</h1>
${prose(info.description)}
<p>The same for programs: <a href="/openapi.json">/openapi.json</a>.</p>
${authenticationSection(document)}
${conventionsSection(document)}
${limitsSection()}
${tokenTypesSection()}
${expressionsSection()}
${tags.map(
  ({ name, description, operations: own }) => html`${heading(2, anchorOf(name), name)}
${prose(description)}
${own.map((one) => operationSection(one, document))}`,
)}
${heading(2, 'schemas', 'Schemas')}
<p>${schemas.map((name) => link(schemaAnchor(name), name))}</p>
${schemas.map((name) => schemaSection(name, document))}
</main>
</body>
</html>
`.text;
}

const guides = [
  ['authentication', 'Authentication'],
  ['requests', 'Requests and responses'],
  ['problems', 'Problems'],
  ['limits', 'Limits, quotas and settings'],
  ['token-types', 'Token types'],
  ['expressions', 'Expressions'],
] as const;

/** In the order of the document. */
function shownIn({ paths }: Document, operations: readonly PublishedOperation[]): ShownOperation[] {
  const byId = new Map(operations.map((published) => [published.operation.id, published]));
  return Object.entries(paths)
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, described]) => ({
        path,
        method,
        described,
        published: byId.get(described.operationId),
      })),
    )
    .sort((a, b) => placeOf(a, operations) - placeOf(b, operations));
}

function placeOf({ published }: ShownOperation, operations: readonly PublishedOperation[]): number {
  return published ? operations.indexOf(published) : operations.length;
}

function navigationOf(name: string, operations: readonly ShownOperation[]): Html {
  const items = operations.map(
    ({ described }) => html`<li>${link(described.operationId, described.summary)}</li>`,
  );
  return html`<li>${link(anchorOf(name), name)}<ul>${items}</ul></li>`;
}

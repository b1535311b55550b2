/** Pieces of HTML. Every string is escaped. */

/** HTML that is safe to be put into a page. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type HtmlPart = Html | string | number | false | undefined | readonly (Html | undefined)[];

/** A template in which strings are escaped and HTML is not. */
export function html(fixed: TemplateStringsArray, ...parts: readonly HtmlPart[]): Html {
  return new Html(fixed.map((text, at) => text + textOf(parts[at])).join(''));
}

function textOf(part: HtmlPart): string {
  if (part === undefined || part === false) return '';
  if (part instanceof Html) return part.text;
  return typeof part === 'object' ? part.map(textOf).join('\n') : escapeHtml(String(part));
}

function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

/** Prose with `code` between backticks, and paragraphs between empty lines. */
export function prose(text: string): Html {
  return new Html(
    text
      .split('\n\n')
      .map((paragraph) => `<p>${inline(paragraph).text}</p>`)
      .join('\n'),
  );
}

/** Words with `code` between backticks. */
export function inline(text: string): Html {
  return new Html(escapeHtml(text).replace(/`([^`]+)`/g, '<code>$1</code>'));
}

export function code(text: string): Html {
  return html`<code>${text}</code>`;
}

export function block(text: string): Html {
  return html`<pre><code>${text}</code></pre>`;
}

export function link(anchor: string, text: string): Html {
  return html`<a href="#${anchor}">${text}</a>`;
}

/** On a narrow screen each row is a card, in which the cells carry the names of their columns. */
export function table(
  caption: string,
  columns: readonly string[],
  rows: readonly (readonly (Html | string)[])[],
): Html {
  const heads = columns.map((column) => html`<th scope="col">${column}</th>`);
  const bodies = rows.map((row) => {
    const cells = row.map((cell, at) => html`<td data-column="${columns[at]}">${cell}</td>`);
    return html`<tr>${cells}</tr>`;
  });
  return html`<table><caption>${caption}</caption><thead><tr>${heads}</tr></thead>
<tbody>${bodies}</tbody></table>`;
}

export function list(parts: readonly Html[], separator = ', '): Html {
  return new Html(parts.map(({ text }) => text).join(separator));
}

/** A heading that can be linked to. */
export function heading(level: 2 | 3 | 4, anchor: string, content: Html | string): Html {
  const tag = new Html(`h${level}`);
  return html`<${tag} id="${anchor}"><a class="anchor" href="#${anchor}">${content}</a></${tag}>`;
}

/** `Token intents` as `token-intents`. */
export function anchorOf(text: string): string {
  return text.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');
}

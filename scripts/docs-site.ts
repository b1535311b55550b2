/**
 * Makes a static site of the documents, which any host can serve: `npm run docs`, into `site/`. It stops where a
 * link leads nowhere. The site loads nothing from elsewhere.
 */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { build } from 'esbuild';
import { Marked } from 'marked';
import MiniSearch from 'minisearch';
import { indexOptions, type Section } from '../packages/documents/src/index-options.ts';

const root = join(import.meta.dirname, '..');
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'";

interface Page {
  /** In the repository. */
  readonly source: string;
  /** In the site. */
  readonly path: string;
  readonly text: string;
}

interface Heading {
  readonly depth: number;
  readonly title: string;
  readonly anchor: string;
}

/** @returns the paths of the pages. @throws where a link leads nowhere. */
export async function buildSite(directory: string): Promise<string[]> {
  const files = sources().map((source): Page => {
    return { source, path: pathOf(source), text: readFileSync(join(root, source), 'utf8') };
  });
  const pages = [...files, decisionsOf(files)];
  const places = new Map(pages.map(({ source, path }) => [source, path]));
  const titles = new Map(pages.map(({ path, text }) => [path, titleOf(text)]));
  rmSync(directory, { recursive: true, force: true });
  const copied = new Set<string>();
  const groups = groupsOf(pages);
  const sections: Section[] = [];
  for (const page of pages) {
    const { html, headings, parts } = render(page, { places, titles, copied });
    sections.push(...parts);
    write(join(directory, page.path), pageOf({ page, html, headings, groups, places }));
  }
  for (const file of copied) {
    mkdirSync(dirname(join(directory, file)), { recursive: true });
    copyFileSync(join(root, file), join(directory, file));
  }
  const index = new MiniSearch<Section>(indexOptions);
  index.addAll(sections);
  write(join(directory, 'search.json'), JSON.stringify(index));
  await build({
    absWorkingDir: join(root, 'packages', 'documents'),
    entryPoints: ['src/site.ts', 'src/site.css'],
    outdir: directory,
    bundle: true,
    minify: true,
    format: 'iife',
    target: ['chrome123', 'firefox120', 'safari17.5'],
    logLevel: 'warning',
  });
  return pages.map(({ path }) => path);
}

/** The documents, from the top of the repository on. */
function sources(): string[] {
  const guides = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' });
  return [...readdirSync(root), ...guides.map((name) => posix.join('docs', name))]
    .filter((name) => name.endsWith('.md'))
    .toSorted();
}

/** A page of the decisions, which the repository shows as a folder. */
function decisionsOf(files: readonly Page[]): Page {
  const lines = files
    .filter(({ source }) => source.startsWith('docs/adr/'))
    .map(({ source, text }) => `- [${titleOf(text)}](${posix.basename(source)})`);
  const text = ['# Decisions', '', ...lines, ''].join('\n');
  return { source: 'docs/adr/README.md', path: 'adr/index.html', text };
}

function titleOf(text: string): string {
  return /^# (.+)$/m.exec(text)?.[1] ?? '';
}

/** Guides are at the top, and what is at the top of the repository is next to them, in lower case. */
function pathOf(source: string): string {
  if (source === 'docs/README.md') return 'index.html';
  const name = source.startsWith('docs/') ? source.slice('docs/'.length) : source.toLowerCase();
  return name.replace(/\.md$/, '.html');
}

const escaped = (text: string) => text.replace(/[&<>"]/g, (one) => `&#${one.codePointAt(0)};`);

/** As GitHub makes them: lower case, without punctuation, hyphens for spaces. */
function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');
}

interface Site {
  /** The path of the page of each document. */
  readonly places: ReadonlyMap<string, string>;
  /** The title of each page. */
  readonly titles: ReadonlyMap<string, string>;
  readonly copied: Set<string>;
}

function render(page: Page, { places, titles, copied }: Site) {
  const headings: Heading[] = [];
  const parts: { heading: Heading; words: string[] }[] = [];
  const anchors = new Map<object, string>();
  const anchorFor = (title: string): string => {
    const anchor = anchorOf(title);
    const same = headings.filter((one) => anchorOf(one.title) === anchor).length;
    return same === 0 ? anchor : `${anchor}-${same}`;
  };
  const marked = new Marked({
    gfm: true,
    walkTokens: (token) => {
      if (token.type === 'heading') {
        const title = plainOf(token.tokens ?? []);
        const heading = { depth: token.depth, title, anchor: anchorFor(title) };
        anchors.set(token, heading.anchor);
        headings.push(heading);
        parts.push({ heading, words: [] });
      } else if (token.type === 'text' || token.type === 'code' || token.type === 'codespan') {
        if (!('tokens' in token) || !token.tokens) parts.at(-1)?.words.push(token.text);
      }
    },
    renderer: {
      heading(token) {
        const { tokens, depth } = token;
        const anchor = anchors.get(token);
        const inner = this.parser.parseInline(tokens);
        return depth === 1
          ? `<h1 id="${anchor}">${inner}</h1>\n`
          : `<h${depth} id="${anchor}"><a href="#${anchor}">${inner}</a></h${depth}>\n`;
      },
      link({ href, tokens }) {
        const target = targetOf(href, page, places, copied);
        const file = posix.join(posix.dirname(page.path), target?.split('#')[0] ?? '');
        // The repository shows names of files, which the site has not.
        const title = /(?:\.md|^adr\/)$/.test(plainOf(tokens)) && titles.get(file);
        const inner = title ? escaped(title) : this.parser.parseInline(tokens);
        return target === undefined ? inner : `<a href="${escaped(target)}">${inner}</a>`;
      },
      image({ href, text }) {
        const target = targetOf(href, page, places, copied) ?? '';
        return `<img src="${escaped(target)}" alt="${escaped(text)}" loading="lazy">`;
      },
      code({ text }) {
        return `<div class="block"><pre tabindex="0"><code>${escaped(text)}</code></pre></div>\n`;
      },
      // Documents have no other markup of their own.
      html: ({ text }) => (/^<\/?(?:kbd|sup|sub|br)>$/.test(text) ? text : escaped(text)),
    },
  });
  const html = (marked.parse(page.text) as string).replace(
    /<table>.*?<\/table>/gs,
    (table) => `<div class="table" tabindex="0">${withoutEmptyHeads(table)}</div>`,
  );
  const title = headings[0]?.title ?? page.source;
  return {
    html,
    headings,
    parts: parts.map(
      ({ heading, words }): Section => ({
        url: `${page.path}#${heading.anchor}`,
        page: title,
        heading: heading.title,
        // Decisions and changes are found by their headings alone.
        text: /^(?:docs\/adr\/|CHANGELOG)/.test(page.source) ? '' : words.join(' '),
      }),
    ),
  };
}

/** A head without words names no column to those who hear the table. */
function withoutEmptyHeads(table: string): string {
  return table
    .replace(/<thead>\s*<tr>(?:\s*<th[^>]*><\/th>)+\s*<\/tr>\s*<\/thead>/, '')
    .replace(/<th([^>]*)><\/th>/g, '<td$1></td>');
}

interface Inline {
  readonly type: string;
  readonly text?: string;
  readonly tokens?: readonly Inline[] | undefined;
}

function plainOf(tokens: readonly Inline[]): string {
  return tokens.map(({ text = '', tokens: inner }) => (inner ? plainOf(inner) : text)).join('');
}

/** From the page on. A file that is no document is copied to the same place; a folder has no page. */
function targetOf(
  href: string,
  { source, path }: Page,
  places: ReadonlyMap<string, string>,
  copied: Set<string>,
): string | undefined {
  if (/^(?:[a-z]+:|#)/.test(href)) return href;
  const [file = '', anchor] = href.split('#');
  const place = posix.join(posix.dirname(source), file).replace(/\/$/, '');
  const known = places.get(place) ?? places.get(`${place}/README.md`);
  const end = anchor === undefined ? '' : `#${anchor}`;
  const from = posix.dirname(path);
  if (known !== undefined) return posix.relative(from, known) + end;
  if (!existsSync(join(root, place))) throw new Error(`${source} links to ${href}`);
  if (statSync(join(root, place)).isDirectory()) return undefined;
  copied.add(place);
  return posix.relative(from, place);
}

interface Group {
  readonly title: string;
  readonly links: readonly { readonly title: string; readonly source: string }[];
}

/** The sections of the index of documents are those of the navigation. */
function groupsOf(pages: readonly Page[]): Group[] {
  const titles = new Map(pages.map(({ source, text }) => [source, titleOf(text)]));
  const index = pages.find(({ source }) => source === 'docs/README.md')?.text ?? '';
  const groups: { title: string; links: { title: string; source: string }[] }[] = [];
  for (const line of index.split('\n')) {
    const [, title] = /^\| \*\*(.+?)\*\* \|/.exec(line) ?? [];
    if (title !== undefined) groups.push({ title, links: [] });
    for (const [, target = ''] of line.matchAll(/\]\(([^)#]+\.md|adr\/)\)/g)) {
      const source = posix.join('docs', target.replace(/\/$/, '/README.md'));
      groups.at(-1)?.links.push({ title: titles.get(source) ?? '', source });
    }
  }
  return groups;
}

interface Shown {
  readonly page: Page;
  readonly html: string;
  readonly headings: readonly Heading[];
  readonly groups: readonly Group[];
  readonly places: ReadonlyMap<string, string>;
}

function pageOf({ page, html, headings, groups, places }: Shown): string {
  const top = posix.relative(posix.dirname(page.path), '.') || '.';
  const title = headings[0]?.title ?? 'Strongroom';
  const navigation = groups
    .filter(({ links }) => links.length > 0)
    .map(({ title: name, links }) => {
      const items = links.map((link) => {
        const isHere = link.source === page.source ? ' aria-current="page"' : '';
        const target = posix.relative(posix.dirname(page.path), places.get(link.source) ?? '');
        return `<li><a href="${target}"${isHere}>${escaped(link.title)}</a></li>`;
      });
      return `<h2>${escaped(name)}</h2><ul>${items.join('')}</ul>`;
    })
    .join('\n');
  const contents = headings
    .filter(({ depth }) => depth === 2)
    .map((one) => `<li><a href="#${one.anchor}">${escaped(one.title)}</a></li>`)
    .join('');
  return `<!doctype html>
<html lang="en" data-top="${top}/">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)} · Strongroom</title>
<link rel="stylesheet" href="${top}/site.css">
<script src="${top}/site.js" defer></script>
</head>
<body>
<a class="skip" href="#main">Skip to the text</a>
<header>
<a href="${top}/index.html">Strongroom</a>
<div class="search" role="search">
<label class="unseen" for="search">Search the documents</label>
<input id="search" type="search" placeholder="Search" autocomplete="off">
<p class="unseen" id="count" role="status"></p>
<ul id="results" hidden></ul>
</div>
</header>
<div class="columns">
<nav class="pages" aria-label="Documents">${navigation}</nav>
<main id="main" tabindex="-1">
<details class="menu"><summary>Documents</summary><nav aria-label="All documents">${navigation}</nav></details>
${html}</main>
${contents && `<nav class="contents" aria-label="On this page"><h2>On this page</h2><ul>${contents}</ul></nav>`}
</div>
</body>
</html>
`;
}

function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

if (import.meta.main) {
  const directory = join(root, 'site');
  const paths = await buildSite(directory);
  process.stdout.write(`${paths.length} pages in ${directory}. Any host can serve them.\n`);
}

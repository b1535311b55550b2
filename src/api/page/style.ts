/** The style of the reference: two columns where there is room, light or dark as the reader's system is. */

import { sha256 } from '../../keys/digest.ts';

export const style = `
:root {
  color-scheme: light dark;
  --text: light-dark(#1b1f24, #e6e8eb);
  --soft: light-dark(#4d5661, #a9b2bd);
  --paper: light-dark(#ffffff, #14171b);
  --raised: light-dark(#f4f6f8, #1d2127);
  --line: light-dark(#d5dae0, #343b45);
  --link: light-dark(#0b57a4, #86bdff);
  --read: light-dark(#0b5d33, #74d69c);
  --write: light-dark(#7a4300, #f0b463);
  --remove: light-dark(#9c1c1c, #ff9b94);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif;
  scroll-padding-top: 1rem;
}
* { box-sizing: border-box; }
body { margin: 0; color: var(--text); background: var(--paper); overflow-wrap: anywhere; }
a { color: var(--link); }
a:focus-visible, summary:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: 1rem; background: var(--paper); padding: 0.5rem; }
main { padding: 1rem; min-width: 0; max-width: 60rem; }
nav { padding: 1rem; background: var(--raised); border-bottom: 1px solid var(--line); font-size: 0.9rem; }
nav ul { list-style: none; margin: 0; padding: 0; }
nav > ul { columns: 9rem; }
nav > ul > li > a { font-weight: 600; }
nav li ul { display: none; padding-left: 0.75rem; }
nav a { display: inline-block; padding: 0.2rem 0; text-decoration: none; color: var(--text); }
nav a:hover { text-decoration: underline; color: var(--link); }
h1 { font-size: 1.9rem; margin: 0.5rem 0; }
h2 { font-size: 1.5rem; margin: 3rem 0 0.5rem; padding-top: 1rem; border-top: 2px solid var(--line); }
h3 { font-size: 1.15rem; margin: 2.5rem 0 0.5rem; }
h4 { font-size: 1rem; margin: 1.5rem 0 0.5rem; }
p { margin: 0.5rem 0; }
.anchor { color: inherit; text-decoration: none; }
.anchor:hover { text-decoration: underline; }
code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: 0.88em; }
p code, td code, li code { background: var(--raised); padding: 0.05em 0.3em; border-radius: 3px; }
pre { white-space: pre-wrap; margin: 0.5rem 0; padding: 0.75rem; }
pre { background: var(--raised); border: 1px solid var(--line); border-radius: 6px; }
.path { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; margin: 0.5rem 0; }
.method { display: inline-block; min-width: 4rem; font-weight: 700; color: var(--write); }
.method.get { color: var(--read); }
.method.delete { color: var(--remove); }
.soft { color: var(--soft); font-size: 0.9rem; }
details { margin: 0.5rem 0; }
summary { cursor: pointer; font-weight: 600; padding: 0.25rem 0; }
table { width: 100%; border-collapse: collapse; margin: 0.75rem 0; font-size: 0.92rem; }
caption { text-align: left; font-weight: 600; padding: 0.25rem 0; }
th, td { text-align: left; vertical-align: top; }
th, td { padding: 0.4rem 0.75rem 0.4rem 0; border-bottom: 1px solid var(--line); }
td, th { overflow-wrap: break-word; }
td code { overflow-wrap: anywhere; }
td:first-child code { overflow-wrap: break-word; }
th { font-weight: 600; color: var(--soft); }
@media (max-width: 46rem) {
  thead { position: absolute; left: -99rem; }
  tr { display: block; border-bottom: 1px solid var(--line); padding: 0.4rem 0; }
  td, td:first-child code { display: block; overflow-wrap: anywhere; }
  td:first-child code { display: inline; }
  td { border: 0; padding: 0.1rem 0; }
  td:empty { display: none; }
  td::before { content: attr(data-column) " "; color: var(--soft); font-size: 0.85em; }
}
@media (min-width: 64rem) {
  body { display: grid; grid-template-columns: 17rem minmax(0, 1fr); }
  nav > ul { columns: auto; }
  nav li ul { display: block; }
  nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; }
  nav { border-bottom: 0; border-right: 1px solid var(--line); }
  main { padding: 1rem 2.5rem 4rem; }
}
@media print { nav { display: none; } }
`;

/** The page may use its own style and nothing else, wherever it came from. */
export const contentSecurityPolicy = [
  "default-src 'none'",
  `style-src 'sha256-${sha256(style).toString('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

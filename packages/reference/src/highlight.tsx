/** Code in colors: strings, comments, numbers, and the words of a language. */
import type { ComponentChildren, JSX } from 'preact';

const words = [
  ...['await', 'async', 'break', 'class', 'const', 'defer', 'err', 'false', 'for', 'from', 'func'],
  ...['if', 'import', 'in', 'let', 'new', 'nil', 'none', 'None', 'null', 'of', 'package', 'public'],
  ...['static', 'return', 'throw', 'throws', 'true', 'True', 'False', 'var', 'void', 'curl'],
];
const pattern = new RegExp(
  [
    /(?<string>"""[\s\S]*?"""|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)/,
    /(?<comment>(?<=^|\s)(?:\/\/|#)[^\n]*)/,
    /(?<number>\b\d+(?:\.\d+)?\b)/,
    new RegExp(`(?<word>\\b(?:${words.join('|')})\\b)`),
  ]
    .map(({ source }) => source)
    .join('|'),
  'gm',
);

/** JSON names are strings before a colon. */
const name = /^\s*:/;

export function Highlighted({ text }: { readonly text: string }): JSX.Element {
  const parts: ComponentChildren[] = [];
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    const [kind = ''] =
      Object.entries(match.groups ?? {}).find(([, one]) => one !== undefined) ?? [];
    const after = match.index + match[0].length;
    const isName = kind === 'string' && name.test(text.slice(after, after + 3));
    parts.push(text.slice(end, match.index));
    parts.push(<span class={isName ? 'name' : kind}>{match[0]}</span>);
    end = after;
  }
  parts.push(text.slice(end));
  return <>{parts}</>;
}

/** Texts of the document: paragraphs with code, bold words and links. */
import type { ComponentChildren, JSX } from 'preact';

const marks = /`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\(([^)\s]+)\)/g;

/** One line of text. */
export function Inline({ text }: { readonly text: string }): JSX.Element {
  const parts: ComponentChildren[] = [];
  let end = 0;
  for (const match of text.matchAll(marks)) {
    const [whole, code, bold, label, target] = match;
    parts.push(text.slice(end, match.index));
    if (code !== undefined) parts.push(<code>{code}</code>);
    else if (bold !== undefined) parts.push(<strong>{bold}</strong>);
    else parts.push(<a href={target ?? ''}>{label}</a>);
    end = match.index + whole.length;
  }
  parts.push(text.slice(end));
  return <>{parts}</>;
}

/** Paragraphs, and lists of lines that begin with a hyphen. */
export function Prose({ text }: { readonly text: string }): JSX.Element {
  return (
    <>
      {text.split(/\n{2,}/).map((block) => {
        const lines = block.split('\n');
        return lines.every((line) => line.startsWith('- ')) ? (
          <ul>
            {lines.map((line) => (
              <li>
                <Inline text={line.slice(2)} />
              </li>
            ))}
          </ul>
        ) : (
          <p>
            <Inline text={lines.join(' ')} />
          </p>
        );
      })}
    </>
  );
}

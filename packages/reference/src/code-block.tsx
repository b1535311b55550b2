/** Code with a title and a copy button. */
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Highlighted } from './highlight.tsx';

interface CodeBlockProps {
  /** Names the region for those who cannot see it. */
  readonly label: string;
  readonly text: string;
  /** In place of the label above the code. */
  readonly head?: ComponentChildren;
}

export function CodeBlock({ label, text, head }: CodeBlockProps): JSX.Element {
  return (
    <section class="code" aria-label={label}>
      <div class="code-head">
        {head ?? <span class="code-title">{label}</span>}
        <CopyButton text={text} what={label} />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <pre tabIndex={0}>
        <code>
          <Highlighted text={text} />
        </code>
      </pre>
    </section>
  );
}

const shownMs = 2_000;

function CopyButton({ text, what }: { readonly text: string; readonly what: string }): JSX.Element {
  const [state, setState] = useState<'ready' | 'copied' | 'refused'>('ready');
  useEffect(() => {
    if (state === 'ready') return undefined;
    const timer = setTimeout(() => setState('ready'), shownMs);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => setState('copied'),
      () => setState('refused'),
    );
  const labels = { ready: 'Copy', copied: 'Copied', refused: 'Not allowed' };
  return (
    <button type="button" class="copy" onClick={copy} aria-label={`${labels[state]}: ${what}`}>
      {labels[state]}
    </button>
  );
}

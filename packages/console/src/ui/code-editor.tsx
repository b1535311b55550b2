/** The editor of code, which is loaded where it is first shown. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { loadEditor } from '../core/editor-script.ts';
import { isDark } from '../core/theme.ts';

interface CodeEditorProps {
  readonly label: string;
  /** Another text is shown in an editor of its own, by its key. */
  readonly initial: string;
  readonly onChange: (text: string) => void;
  /** Names in the arguments of a run, which are completed. */
  readonly argumentNames: () => readonly string[];
}

export function CodeEditor({ label, initial, onChange, argumentNames }: CodeEditorProps) {
  const parent = useRef<HTMLDivElement>(null);
  const [isPlain, setPlain] = useState(false);
  const latest = useRef(onChange);
  latest.current = onChange;
  const names = useRef(argumentNames);
  names.current = argumentNames;
  useEffect(() => {
    let close: (() => void) | undefined;
    let isCurrent = true;
    const open = async () => {
      const module = await loadEditor();
      if (!isCurrent || !parent.current) return;
      const view = module.openEditor({
        parent: parent.current,
        text: initial,
        label,
        isDark: isDark(),
        onChange: (text) => latest.current(text),
        argumentNames: () => names.current(),
      });
      close = () => view.destroy();
    };
    // Without the editor the code can still be changed.
    open().catch(() => isCurrent && setPlain(true));
    return () => {
      isCurrent = false;
      close?.();
    };
  }, []);
  if (isPlain) {
    return (
      <textarea
        class="code"
        aria-label={label}
        rows={16}
        spellcheck={false}
        defaultValue={initial}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
    );
  }
  return <div class="editor" ref={parent} />;
}

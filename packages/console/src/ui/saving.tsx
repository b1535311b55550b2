/** Saving what was edited: where somebody else saved meanwhile, both are shown, and the person chooses. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { type Draft, isSame } from '../core/drafts.ts';
import { t } from '../texts.ts';
import { Button, ErrorNote, useAction } from './basics.tsx';
import { Dialog } from './dialog.tsx';
import { notify } from './toasts.tsx';

interface SavingOptions<T> {
  readonly draft: Draft<T>;
  /** What is stored now. */
  readonly read: () => Promise<T>;
  /** Also shows what was saved. */
  readonly write: (value: T) => Promise<void>;
  /** Shows what is stored, without writing it. */
  readonly show: (value: T) => void;
  readonly textOf: (value: T) => string;
}

export interface Saving {
  readonly isBusy: boolean;
  readonly save: () => void;
  /** Why it failed, and the choice after a conflict. */
  readonly notice: ComponentChildren;
}

export function useSaving<T>({ draft, read, write, show, textOf }: SavingOptions<T>): Saving {
  const [theirs, setTheirs] = useState<{ readonly value: T } | undefined>(undefined);
  const { isBusy, error, run } = useAction();
  const finish = async (before: T) => {
    await write(draft.value);
    draft.clear();
    setTheirs(undefined);
    notify({ text: t.saved, undo: () => write(before) });
  };
  const save = async () => {
    const current = await read();
    if (isSame(current, draft.base) || isSame(current, draft.value)) await finish(current);
    else setTheirs({ value: current });
  };
  return {
    isBusy,
    save: () => void run(save),
    notice: (
      <>
        <ErrorNote error={error} />
        {theirs && (
          <Conflict
            mine={textOf(draft.value)}
            theirs={textOf(theirs.value)}
            isBusy={isBusy}
            onClose={() => setTheirs(undefined)}
            onMine={() => void run(() => finish(theirs.value))}
            onTheirs={() => {
              draft.clear();
              setTheirs(undefined);
              show(theirs.value);
            }}
          />
        )}
      </>
    ),
  };
}

interface ConflictProps {
  readonly mine: string;
  readonly theirs: string;
  readonly isBusy: boolean;
  readonly onClose: () => void;
  readonly onMine: () => void;
  readonly onTheirs: () => void;
}

function Conflict({ mine, theirs, isBusy, onClose, onMine, onTheirs }: ConflictProps) {
  return (
    <Dialog title={t.conflict.title} onClose={onClose} isWide>
      <div class="dialog-body">
        <p>{t.conflict.text}</p>
        <div class="compare">
          <div>
            <h3>{t.conflict.theirs}</h3>
            <Compared text={theirs} other={mine} />
            <Button onClick={onTheirs}>{t.conflict.takeTheirs}</Button>
          </div>
          <div>
            <h3>{t.conflict.mine}</h3>
            <Compared text={mine} other={theirs} />
            <Button tone="primary" isBusy={isBusy} onClick={onMine}>
              {t.conflict.keepMine}
            </Button>
          </div>
        </div>
      </div>
    </Dialog>
  );
}

/** Lines that the other one does not have are marked. */
function Compared({ text, other }: { text: string; other: string }) {
  const known = new Set(other.split('\n'));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls
    <pre class="value-box compared" tabIndex={0}>
      {text.split('\n').map((line, at) => (
        <span key={at}>
          {known.has(line) ? line : <mark>{line}</mark>}
          {'\n'}
        </span>
      ))}
    </pre>
  );
}

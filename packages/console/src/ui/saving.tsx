/** Saving what was edited: where somebody else saved meanwhile, both are shown, and the person chooses. */
import { ConflictError, etagOf } from '@strongroom/client';
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { type Draft, isSame } from '../core/drafts.ts';
import { t } from '../texts.ts';
import { Button, ErrorNote, useAction } from './basics.tsx';
import { Dialog } from './dialog.tsx';
import { notify } from './toasts.tsx';

/** What the vault has stored, and the tag of that state. */
interface Stored<T> {
  readonly value: T;
  readonly etag: string | undefined;
}

interface GuardOptions<T, R extends object> {
  readonly read: () => Promise<R>;
  /** What is edited of the resource. */
  readonly editedOf: (resource: R) => T;
  /**
   * Writes over the state of that tag and no other, and shows what was saved.
   * @returns the resource as it was saved; `undefined` where there is no way back.
   */
  readonly write: (value: T, before: Stored<T>) => Promise<R | undefined>;
  /** Shows what is stored, without writing it. */
  readonly show: (value: T) => void;
  readonly textOf: (value: T) => string;
  /** Once it is saved, or given up. */
  readonly onDone: () => void;
}

interface Guard<T> {
  /** @param base what the editing began with. */
  readonly save: (value: T, base: T) => Promise<void>;
  /** The choice after a conflict. */
  readonly conflict: ComponentChildren;
}

/** The vault refuses what somebody else changed in between: each attempt reads again. */
const attemptsMax = 5;

/** Saves what was edited over what the editing began with, and leaves any other choice to the person. */
export function useGuard<T, R extends object>(options: GuardOptions<T, R>): Guard<T> {
  const { read, editedOf, write, show, textOf, onDone } = options;
  const [meeting, setMeeting] = useState<{ mine: T; theirs: Stored<T> } | undefined>(undefined);
  const { isBusy, error, run } = useAction();
  const put = async (value: T, before: Stored<T>) => {
    const saved = await write(value, before);
    const etag = saved && etagOf(saved);
    setMeeting(undefined);
    onDone();
    const undo = async () => {
      await write(before.value, { value, etag });
    };
    notify({ text: t.saved, ...(etag !== undefined && { undo }) });
  };
  const save = async (mine: T, base: T) => {
    for (let attempt = 1; ; attempt++) {
      const resource = await read();
      const theirs = { value: editedOf(resource), etag: etagOf(resource) };
      if (!isSame(theirs.value, base) && !isSame(theirs.value, mine)) {
        setMeeting({ mine, theirs });
        return;
      }
      try {
        await put(mine, theirs);
        return;
      } catch (failure) {
        if (!isChangedSince(failure) || attempt === attemptsMax) throw failure;
      }
    }
  };
  const keepMine = async ({ mine, theirs }: { mine: T; theirs: Stored<T> }) => {
    try {
      await put(mine, theirs);
    } catch (failure) {
      if (!isChangedSince(failure)) throw failure;
      await save(mine, theirs.value);
    }
  };
  return {
    save,
    conflict: meeting && (
      <Conflict
        mine={textOf(meeting.mine)}
        theirs={textOf(meeting.theirs.value)}
        isBusy={isBusy}
        error={error}
        onClose={() => setMeeting(undefined)}
        onMine={() => void run(() => keepMine(meeting))}
        onTheirs={() => {
          setMeeting(undefined);
          onDone();
          show(meeting.theirs.value);
        }}
      />
    ),
  };
}

/** The state that a change was made for is not the one of the vault any more. */
function isChangedSince(error: unknown): boolean {
  return error instanceof ConflictError && error.code === 'precondition_failed';
}

interface SavingOptions<T, R extends object> extends Omit<GuardOptions<T, R>, 'onDone'> {
  readonly draft: Draft<T>;
}

export interface Saving {
  readonly isBusy: boolean;
  readonly save: () => void;
  /** Why it failed, and the choice after a conflict. */
  readonly notice: ComponentChildren;
}

export function useSaving<T, R extends object>({ draft, ...options }: SavingOptions<T, R>): Saving {
  const { save, conflict } = useGuard({ ...options, onDone: draft.clear });
  const { isBusy, error, run } = useAction();
  return {
    isBusy,
    save: () => void run(() => save(draft.value, draft.base)),
    notice: (
      <>
        <ErrorNote error={error} />
        {conflict}
      </>
    ),
  };
}

interface ConflictProps {
  readonly mine: string;
  readonly theirs: string;
  readonly isBusy: boolean;
  readonly error: unknown;
  readonly onClose: () => void;
  readonly onMine: () => void;
  readonly onTheirs: () => void;
}

function Conflict(props: ConflictProps) {
  const { mine, theirs, isBusy, error, onClose, onMine, onTheirs } = props;
  return (
    <Dialog title={t.conflict.title} onClose={onClose} isWide>
      <div class="dialog-body">
        <p>{t.conflict.text}</p>
        <ErrorNote error={error} />
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

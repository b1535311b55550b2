/** Dialogs: the browser's own, which keeps the focus and closes by Escape. */
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { t } from '../texts.ts';
import { Button, ErrorNote, TextField, useAction } from './basics.tsx';

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly isWide?: boolean;
  /** A click beside it would lose what was typed. */
  readonly isForm?: boolean;
  readonly children: ComponentChildren;
}

export function Dialog({ title, onClose, isWide, isForm, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog
      ref={dialog}
      class={isWide ? 'wide' : undefined}
      aria-labelledby={id}
      onClose={onClose}
      onPointerDown={(event) => {
        if (event.target === dialog.current && !isForm) onClose();
      }}
    >
      <div class="dialog">
        <header>
          <h2 id={id}>{title}</h2>
          <Button icon="close" tone="quiet" label={t.close} onClick={onClose} />
        </header>
        {children}
      </div>
    </dialog>
  );
}

interface FormDialogProps extends DialogProps {
  readonly submit: string;
  readonly tone?: 'primary' | 'danger';
  readonly isReady?: boolean;
  /** Closes the dialog unless it throws. */
  readonly onSubmit: () => Promise<void>;
}

export function FormDialog(props: FormDialogProps) {
  const { submit, tone = 'primary', isReady = true, onSubmit, onClose, children } = props;
  const { isBusy, error, run } = useAction();
  return (
    <Dialog {...props} isForm>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void run(onSubmit);
        }}
      >
        <div class="dialog-body">{children}</div>
        <ErrorNote error={error} />
        <footer>
          <Button onClick={onClose}>{t.cancel}</Button>
          <Button type="submit" tone={tone} disabled={!isReady} isBusy={isBusy}>
            {submit}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}

interface DestroyProps {
  readonly title: string;
  readonly text: ComponentChildren;
  /** What has to be typed. */
  readonly name: string;
  readonly submit?: string;
  readonly onClose: () => void;
  readonly onSubmit: () => Promise<void>;
}

/** What cannot be taken back is done only once its name was typed. */
export function DestroyDialog({ title, text, name, submit = t.delete, ...rest }: DestroyProps) {
  const [typed, setTyped] = useState('');
  return (
    <FormDialog title={title} submit={submit} tone="danger" isReady={typed === name} {...rest}>
      <p>{text}</p>
      <TextField label={t.typeName(name)} value={typed} onValue={setTyped} />
    </FormDialog>
  );
}

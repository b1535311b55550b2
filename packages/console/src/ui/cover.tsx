/** Covers the whole page, also an open dialog of it, until the person can go on. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { refresh } from '../core/session.ts';
import { t } from '../texts.ts';

interface CoverProps {
  /** Whether a page of a session is below. */
  readonly isOverPage: boolean;
  readonly children: ComponentChildren;
}

export function Cover({ isOverPage, children }: CoverProps) {
  if (isOverPage) return <CoverDialog>{children}</CoverDialog>;
  return <div>{children}</div>;
}

function CoverDialog({ children }: Pick<CoverProps, 'children'>) {
  const dialog = useRef<HTMLDialogElement>(null);
  // Before that of the sign-in is in its place.
  const title = useRef(document.title);
  useEffect(() => {
    // Only a later modal dialog is above one that is open.
    dialog.current?.showModal();
    // The person may have signed in on another page.
    const look = () => void refresh();
    window.addEventListener('focus', look);
    return () => {
      window.removeEventListener('focus', look);
      document.title = title.current;
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class="cover"
      aria-label={t.product}
      onCancel={(event) => event.preventDefault()}
      // Browsers let nobody be kept in a dialog by that alone.
      onClose={() => dialog.current?.showModal()}
    >
      <p class="note warn">{t.ended}</p>
      {children}
    </dialog>
  );
}

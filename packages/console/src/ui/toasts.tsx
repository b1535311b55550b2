/** Short notices at the edge of the page: what was done, and for some of them the way back. */
import { signal } from '@preact/signals';
import { t } from '../texts.ts';

interface Notice {
  readonly text: string;
  readonly tone?: 'bad';
  /** Takes back what the notice says was done. */
  readonly undo?: () => void | Promise<void>;
}

const shownMs = 6_000;
const notices = signal<readonly (Notice & { readonly id: number })[]>([]);
let last = 0;

export function notify(notice: Notice): void {
  last += 1;
  const id = last;
  notices.value = [...notices.value.slice(-2), { ...notice, id }];
  setTimeout(() => dismiss(id), notice.undo ? shownMs * 2 : shownMs);
}

function dismiss(id: number): void {
  notices.value = notices.value.filter((one) => one.id !== id);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {notices.value.map(({ id, text, tone, undo }) => (
        <div key={id} class={`toast ${tone ?? ''}`}>
          <span>{text}</span>
          {undo && (
            <button
              type="button"
              class="link"
              onClick={() => {
                dismiss(id);
                void undo();
              }}
            >
              {t.undo}
            </button>
          )}
        </div>
      ))}
    </div>
  );
}

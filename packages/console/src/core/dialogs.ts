/** Open dialogs: the address names them, so that a link opens one again, and the browser's way back closes it. */
import { useEffect, useState } from 'preact/hooks';
import { openQuery, place, setQuery } from './router.ts';

/** `dialog` belongs to the page, and `over` lies over everything, dialogs too. */
type Layer = 'dialog' | 'over';

/** @param of what it is about, where the page has several of a kind. Never what was typed, and no value. */
export function openDialog(name: string, of?: string): void {
  openQuery({ dialog: name, of }, 'dialog');
}

export function openOver(name: string): void {
  if (!isIn('over', name)) openQuery({ over: name }, 'over');
}

const isIn = (layer: Layer, name: string) => place.value.query.get(layer) === name;

export const isDialogOpen = (name: string): boolean => isIn('dialog', name);
export const isOverOpen = (name: string): boolean => isIn('over', name);

/** What the open dialog of that name is about; `undefined` for every other one. */
export function subjectOf(name: string): string | undefined {
  return isDialogOpen(name) ? (place.value.query.get('of') ?? '') : undefined;
}

export const closeDialog = (name: string): void => close('dialog', name);
export const closeOver = (name: string): void => close('over', name);

/** The way back takes a moment, in which another click could go further back. */
let isGoingBack = false;
window.addEventListener('popstate', () => {
  isGoingBack = false;
});

/** Who has come by a link stays on the page. */
function close(layer: Layer, name: string): void {
  if (isGoingBack || !isIn(layer, name)) return;
  if (history.state?.opened === layer) {
    isGoingBack = true;
    history.back();
  } else setQuery(layer === 'dialog' ? { dialog: undefined, of: undefined } : { over: undefined });
}

/** What a dialog shows once, such as a new key: neither a link nor the browser's way forward shows it again. */
export function useShownOnce<T>(name: string): readonly [T | undefined, (value: T) => void] {
  const [value, setValue] = useState<T | undefined>(undefined);
  const isOpen = isDialogOpen(name);
  useEffect(() => {
    if (!isOpen) setValue(undefined);
  }, [isOpen]);
  const show = (shown: T) => {
    setValue(() => shown);
    openDialog(name);
  };
  return [isOpen ? value : undefined, show];
}

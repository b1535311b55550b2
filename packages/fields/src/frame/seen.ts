/**
 * Whether a person sees a button: a page could show its frame through a bait, or under one, so that a click on the bait
 * copies a value. Chromium reports what covers a frame, and how opaque it is. Other browsers do not, and there the
 * button can always be used.
 */

/** So long it has to be seen before it can be used: a page could uncover it just before the click. */
const seenMsMin = 500;
/** The shortest that browsers permit. */
const delayMs = 100;
/** So much of it has to be in the window, at any place of a pixel. */
const partMin = 0.9;

/** https://w3c.github.io/IntersectionObserver/v2/ */
interface VisibilityEntry extends IntersectionObserverEntry {
  readonly isVisible?: boolean;
}

/** Marks the button as disabled while it is not seen. */
export function watchSeen(button: HTMLButtonElement): () => boolean {
  if (!('isVisible' in IntersectionObserverEntry.prototype)) return () => true;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const mark = (isSeen: boolean) => button.setAttribute('aria-disabled', String(!isSeen));
  const isSeen = () => button.ariaDisabled === 'false';
  mark(false);
  const setting = { threshold: partMin, trackVisibility: true, delay: delayMs };
  new IntersectionObserver((entries) => {
    clearTimeout(timer);
    if ((entries.at(-1) as VisibilityEntry).isVisible !== true) mark(false);
    else if (!isSeen()) timer = setTimeout(() => mark(true), seenMsMin);
  }, setting).observe(button);
  return isSeen;
}

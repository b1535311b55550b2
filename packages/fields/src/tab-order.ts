/**
 * Which fields follow each other directly in the order of Tab. The frame of a field moves the focus to the next one
 * itself, in one step: the browser needs messages between processes for that, and loses keys that are typed meanwhile.
 */
import type { Neighbors } from './protocol.ts';

interface FieldElement extends Element {
  /** By which its frame knows it. */
  readonly elementId: string;
}

/** What may take the focus. Where one of these is between two fields, the browser moves the focus. */
const focusable =
  'a[href],area,audio,button,details,embed,iframe,input:not([type=hidden]),object,select,summary,textarea,video,' +
  '[contenteditable],[tabindex]';

export function neighborsOf<T extends FieldElement>(
  elements: ReadonlySet<T>,
): ReadonlyMap<T, Neighbors> {
  const neighbors = new Map<T, { next?: string; previous?: string }>();
  for (const element of elements) neighbors.set(element, {});
  for (const [element, of] of neighbors) {
    const next = nextField(element, elements);
    const back = next && neighbors.get(next);
    if (!back) continue;
    of.next = next.elementId;
    back.previous = element.elementId;
  }
  return neighbors;
}

function nextField<T extends FieldElement>(element: T, elements: ReadonlySet<T>): T | undefined {
  const orderOf = (one: Element) => one.closest('[tabindex],[inert],dialog');
  const walker = document.createTreeWalker(document, NodeFilter.SHOW_ELEMENT);
  walker.currentNode = element.lastElementChild ?? element;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const one = node as T;
    if (elements.has(one)) {
      const isVisible = one.checkVisibility?.({ visibilityProperty: true });
      return isVisible && orderOf(one) === orderOf(element) ? one : undefined;
    }
    // Other custom elements may have focusable parts that are not seen from outside.
    if (one.matches(focusable) || one.localName.includes('-') || isScrolled(one)) return undefined;
  }
  return undefined;
}

/** Browsers give the focus to what can be scrolled by keys. */
function isScrolled(element: Element): boolean {
  const isLarger =
    element.scrollHeight > element.clientHeight || element.scrollWidth > element.clientWidth;
  return isLarger && /auto|scroll/.test(getComputedStyle(element).overflow);
}

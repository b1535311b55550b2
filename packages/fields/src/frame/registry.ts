/**
 * How frames of one key in one page find each other: through the browser's own border between origins, which the page
 * around them cannot cross. No value passes through a message.
 */
import { CallError } from './api.ts';

/** What the frame that calls the vault knows about a field. */
export interface RegisteredField {
  /** Throws {@link incompleteError} where it is incomplete, and shows the customer why. */
  read(part: string): Promise<unknown> | unknown;
  /** Strings of at least one character that the page must not see, as they were typed. */
  secrets(): readonly string[];
  /** Takes the focus, at its end if so. False where the browser has to move it. */
  enter(isAtEnd: boolean): boolean;
}

export interface Controller {
  register(element: string, field: RegisteredField, owner: Window): void;
  /** Moves the focus into the field of that element. */
  enter(element: string, isAtEnd: boolean): boolean;
  /** Sends a request of a frame with the session of this page. */
  reveal(token: string): Promise<unknown>;
}

/** Says no more than that: what is wrong is for the customer. */
export function incompleteError(): CallError {
  return new CallError({
    code: 'incomplete',
    message: 'A field is incomplete or not valid; it says why.',
  });
}

interface FrameOfVault extends Window {
  strongroomController?: Controller;
}

export function offerController(controller: Controller): void {
  (window as FrameOfVault).strongroomController = controller;
}

/**
 * All controllers of the same key in this page. A frame of another key is of the same origin, but must not get the
 * values: its key may belong to somebody else.
 */
export function controllers(): readonly Controller[] {
  const found: Controller[] = [];
  for (let at = 0; at < parent.length; at += 1) {
    try {
      const frame = parent[at] as unknown as FrameOfVault;
      const isOurs = frame.location.pathname === location.pathname;
      if (isOurs && frame.strongroomController) found.push(frame.strongroomController);
    } catch {
      // A frame of another origin.
    }
  }
  return found;
}

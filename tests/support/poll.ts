/** Waiting for what reaches a test in no other way than by looking again. */
import { setTimeout as pause } from 'node:timers/promises';

/** A look in every turn of the event loop takes a whole processor, which what is waited for needs as well. */
const pollMs = 5;

/** A busy machine may need minutes. Less than a test may take, so that the test says what it waited for. */
const waitMsMax = 4 * 60_000;

/** Resolves when it is time for the next look. */
export const nextLook = (): Promise<void> => pause(pollMs);

/** Looks again until it is so. @throws Error with the text of `otherwise` where it never is. */
export async function untilSo(
  isSo: () => boolean | Promise<boolean>,
  otherwise: () => string,
): Promise<void> {
  const end = performance.now() + waitMsMax;
  while (!(await isSo())) {
    if (performance.now() > end) throw new Error(otherwise());
    await nextLook();
  }
}

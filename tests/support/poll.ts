/** Waiting for what reaches a test in no other way than by looking again. */
import { setTimeout as pause } from 'node:timers/promises';

/** A look in every turn of the event loop takes a whole processor, which what is waited for needs as well. */
const pollMs = 5;

/** Resolves when it is time for the next look. */
export const nextLook = (): Promise<void> => pause(pollMs);

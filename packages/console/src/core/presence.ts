/** Proving to be present: what a request waits for that the vault refuses without it. */
import { signal } from '@preact/signals';

interface PendingProof {
  readonly settle: (isProved: boolean) => void;
}

/** The requests that wait, all for the same proof. */
export const pendingProof = signal<PendingProof | undefined>(undefined);

let waiting: Promise<boolean> | undefined;

/** False where the person closes the dialog. */
export function provePresence(): Promise<boolean> {
  waiting ??= new Promise<boolean>((resolve) => {
    pendingProof.value = {
      settle: (isProved) => {
        pendingProof.value = undefined;
        waiting = undefined;
        resolve(isProved);
      },
    };
  });
  return waiting;
}

/** True for a response that says so. */
export async function needsPresence(response: Response): Promise<boolean> {
  if (response.status !== 403) return false;
  const problem = await response
    .clone()
    .json()
    .catch(() => undefined);
  return String(problem?.type).endsWith(':reauthentication_required');
}

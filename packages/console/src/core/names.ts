/** The names of applications, so that the log reads as people speak of them. */
import { signal } from '@preact/signals';
import { shortId } from './format.ts';
import { may, vaultFor } from './session.ts';

const namesMax = 500;
const names = signal<ReadonlyMap<string, string> | undefined>(undefined);
let isAsked = false;

/** The name, or the beginning of the id until the names are known, and of what no longer exists. */
export function nameOfApplication(id: string | undefined): string {
  if (id === undefined) return '';
  if (!isAsked && may('application:read')) {
    isAsked = true;
    void load();
  }
  return names.value?.get(id) ?? shortId(id);
}

/** Asks again, after applications changed. */
export function forgetNames(): void {
  isAsked = false;
}

async function load(): Promise<void> {
  try {
    const all = await vaultFor('application:read')
      .applications.list({ size: 100 })
      .toArray(namesMax);
    names.value = new Map(all.map(({ id, name }) => [id, name]));
  } catch {
    isAsked = false;
  }
}

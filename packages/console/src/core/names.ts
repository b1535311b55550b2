/** The names of applications, so that the log reads as people speak of them. */
import { signal } from '@preact/signals';
import { shortId } from './format.ts';
import { may, session, vaultFor } from './session.ts';

/** Of one request. */
const idsMax = 100;
const names = signal<ReadonlyMap<string, string>>(new Map());
/** Those that the page has shown, whether or not the vault knows them. */
const asked = new Set<string>();
let waiting: string[] = [];

/** The name, or the beginning of the id until the name is known, and of what no longer exists. */
export function nameOfApplication(id: string | undefined): string {
  if (id === undefined) return '';
  const role = session.value?.applications.find((one) => one.id === id);
  if (role) return role.name;
  if (!asked.has(id) && may('application:read')) {
    asked.add(id);
    waiting.push(id);
    // What a page shows is asked for together.
    if (waiting.length === 1) queueMicrotask(() => void load());
  }
  return names.value.get(id) ?? shortId(id);
}

async function load(): Promise<void> {
  const ids = waiting;
  waiting = [];
  for (let from = 0; from < ids.length; from += idsMax) {
    const id = ids.slice(from, from + idsMax);
    try {
      const found = await vaultFor('application:read')
        .applications.list({ id, size: idsMax })
        .toArray(idsMax);
      names.value = new Map([...names.value, ...found.map((one) => [one.id, one.name] as const)]);
    } catch {
      for (const one of id) asked.delete(one);
    }
  }
}

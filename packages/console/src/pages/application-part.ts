/** A part of an application that has an editor of its own. */
import type { Application, ApplicationUpdate } from '@strongroom/client';
import { useRef } from 'preact/hooks';
import { vaultFor } from '../core/session.ts';
import { useGuard } from '../ui/saving.tsx';

interface PartOptions<T> {
  readonly application: Application;
  readonly onSaved: (application: Application) => void;
  readonly editedOf: (application: Application) => T;
  /** What of the application is replaced. */
  readonly changeOf: (value: T) => Partial<ApplicationUpdate>;
  readonly textOf: (value: T) => string;
  readonly onDone: () => void;
}

/** Saves the part alone: name, permissions, and rules stay as they are stored then. */
export function usePartGuard<T>(options: PartOptions<T>) {
  const { application, onSaved, editedOf, changeOf, textOf, onDone } = options;
  const latest = useRef(application);
  const { id } = application;
  return useGuard<T, Application>({
    read: async () => {
      latest.current = await vaultFor('application:read').applications.get(id);
      return latest.current;
    },
    editedOf,
    write: async (value, { etag: ifMatch }) => {
      const { name, permissions, rules } = latest.current;
      const update = { name, permissions, rules, ...changeOf(value) } as ApplicationUpdate;
      const saved = await vaultFor('application:update').applications.update(
        id,
        update,
        ifMatch === undefined ? {} : { ifMatch },
      );
      latest.current = saved;
      onSaved(saved);
      return saved;
    },
    show: () => onSaved(latest.current),
    textOf,
    onDone,
  });
}

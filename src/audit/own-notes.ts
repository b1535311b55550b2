/** The notes of grown logs that this process wrote. In the database they can be deleted, or lost in a failover. */
import type { Instant } from '../base/clock.ts';
import type { Row } from '../store/tables.ts';

/** Remembered at once, of all threads. One that is forgotten is still in the database. */
const ownNotesMax = 50_000;

export interface OwnNotes {
  /** Once the note is stored. */
  add(note: Row<'due_work'>): void;
  all(): ReadonlyMap<string, Row<'due_work'>>;
  /** Forgets those from that instant and before. */
  forget(until: Instant): void;
}

export function createOwnNotes(notesMax: number = ownNotesMax): OwnNotes {
  const notes = new Map<string, Row<'due_work'>>();
  return {
    add: (note) => {
      notes.set(nameOf(note), note);
      const [oldest] = notes.keys();
      if (notes.size > notesMax && oldest !== undefined) notes.delete(oldest);
    },
    all: () => new Map(notes),
    forget: (until) => {
      for (const [name, { due_at }] of notes) if (due_at <= until) notes.delete(name);
    },
  };
}

export function nameOf({ tenant_id, due_at }: Row<'due_work'>): string {
  return `${tenant_id} ${due_at}`;
}

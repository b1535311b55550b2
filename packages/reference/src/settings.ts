/** What the reader entered: held in memory, and gone with the page. */
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Language } from './samples/samples.ts';

export interface Settings {
  readonly language: Language;
  /** An API key of the reader. */
  readonly key: string;
  /** By the example that stands for them: ids of the reader. */
  readonly ids: Readonly<Record<string, string>>;
}

export interface SettingsAccess {
  readonly settings: Settings;
  change(part: Partial<Settings>): void;
  /** The address of the vault. */
  readonly url: string;
  readonly keyHeader: string;
  /** Whether this page comes from a vault, to which it can send requests. */
  readonly isServed: boolean;
}

export const SettingsContext = createContext<SettingsAccess | undefined>(undefined);

export function useSettings(): SettingsAccess {
  const access = useContext(SettingsContext);
  if (!access) throw new Error('there are no settings around this component');
  return access;
}

/** Puts the reader's ids in place of the examples. */
export function withOwnIds(text: string, ids: Readonly<Record<string, string>>): string {
  return Object.entries(ids).reduce(
    (changed, [example, own]) => (own === '' ? changed : changed.replaceAll(example, own)),
    text,
  );
}

/** Light or dark: as the system says, unless the person has chosen. */
import { signal } from '@preact/signals';

export type Theme = 'system' | 'light' | 'dark';

/** The one thing that the console stores in the browser. */
const stored = 'strongroom-theme';

function read(): Theme {
  const value = localStorage.getItem(stored);
  return value === 'light' || value === 'dark' ? value : 'system';
}

export const theme = signal<Theme>(read());

export function isDark(): boolean {
  if (theme.value !== 'system') return theme.value === 'dark';
  return matchMedia('(prefers-color-scheme: dark)').matches;
}

export function setTheme(chosen: Theme): void {
  theme.value = chosen;
  if (chosen === 'system') localStorage.removeItem(stored);
  else localStorage.setItem(stored, chosen);
  apply();
}

export function apply(): void {
  document.documentElement.dataset['theme'] = isDark() ? 'dark' : 'light';
}

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', apply);

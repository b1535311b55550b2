/** What customers read in a field, in 12 languages. */
import texts from './words.json' with { type: 'json' };

export type Word = keyof (typeof texts)['en'];

export interface Words {
  readonly language: string;
  of(word: Word): string;
}

const languages: Readonly<Record<string, Readonly<Record<Word, string>>>> = texts;

/** The language of the locale, such as `pt-BR`; English where it is not known. */
export function wordsIn(locale = 'en'): Words {
  const base = locale.toLowerCase().split(/[-_]/)[0] ?? '';
  const language = Object.hasOwn(languages, base) ? base : 'en';
  return { language, of: (word) => (languages[language] ?? texts.en)[word] };
}

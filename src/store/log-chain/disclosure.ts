/** The disclosure in the entry of a read: how its data was shown, and through which operation. */

/** Each as the text of an entry has it, in one letter. */
const shownLetters = { revealed: 'r', masked: 'm', redacted: 'x' } as const;
const throughLetters = {
  get: 'g',
  list: 'l',
  search: 's',
  detokenize: 'd',
  export: 'e',
  create: 'c',
  update: 'u',
  replay: 'y',
  proxy: 'p',
  reactor: 'r',
} as const;

export type Shown = keyof typeof shownLetters;
export type Through = keyof typeof throughLetters;

export interface Disclosure {
  readonly shown: Shown;
  readonly through: Through;
}

/** Both letters, `shown` first. An entry has a code and no words: one is written for nearly every read. */
export type DisclosureCode = `${(typeof shownLetters)[Shown]}${(typeof throughLetters)[Through]}`;

export const shownWords = Object.keys(shownLetters) as readonly Shown[];
export const throughWords = Object.keys(throughLetters) as readonly Through[];

const disclosures: ReadonlyMap<string, Disclosure> = new Map(
  shownWords.flatMap((shown) =>
    throughWords.map((through) => [codeOf({ shown, through }), { shown, through }] as const),
  ),
);

export function codeOf({ shown, through }: Disclosure): DisclosureCode {
  return `${shownLetters[shown]}${throughLetters[through]}`;
}

/** `undefined` for a text that is not a code. */
export function disclosureOf(code: string): Disclosure | undefined {
  return disclosures.get(code);
}

/** The brands of cards: how their numbers begin, how long they are, and how people write them. */

export interface Brand {
  readonly name: string;
  /** On the badge in the field. */
  readonly badge: string;
  /** Ranges of first digits, both ends included and equally long. */
  readonly ranges: readonly (readonly [string, string])[];
  readonly lengths: readonly number[];
  /** After how many digits a space is shown. */
  readonly gaps: readonly number[];
  readonly codeLength: number;
}

const fours = [4, 8, 12, 16];

function brand(
  name: string,
  badge: string,
  ranges: string,
  { lengths = [16], gaps = fours, codeLength = 3 } = {},
): Brand {
  const parsed = ranges.split(' ').map((range) => {
    const [from = '', to = from] = range.split('-');
    return [from, to] as const;
  });
  return { name, badge, ranges: parsed, lengths, gaps, codeLength };
}

/** More exact ranges win over shorter ones, whatever their order. */
const brands: readonly Brand[] = [
  brand('visa', 'VISA', '4', { lengths: [13, 16, 19] }),
  brand('mastercard', 'MC', '51-55 2221-2720'),
  brand('american-express', 'AMEX', '34 37', { lengths: [15], gaps: [4, 10], codeLength: 4 }),
  brand('discover', 'DISC', '6011 644-649 65 622126-622925', { lengths: [16, 19] }),
  brand('diners-club', 'DC', '300-305 3095 36 38-39', { lengths: [14, 16, 19], gaps: [4, 10] }),
  brand('jcb', 'JCB', '3528-3589', { lengths: [16, 17, 18, 19] }),
  brand('unionpay', 'UP', '62 81', { lengths: [16, 17, 18, 19] }),
  brand('maestro', 'MSTR', '50 56-58 639 67', { lengths: [12, 13, 14, 15, 16, 17, 18, 19] }),
  brand(
    'elo',
    'ELO',
    '401178-401179 438935 457631-457632 504175 506699-506778 509000-509999 627780 636297',
  ),
  brand('mir', 'MIR', '2200-2204', { lengths: [16, 17, 18, 19] }),
  brand('troy', 'TROY', '979200-979289'),
  brand('rupay', 'RUPAY', '60 82 508500-508999'),
];

/** What is known of a number that has not said its brand yet. */
export const unknownBrand: Brand = {
  ...brand('unknown', '', ''),
  lengths: [12, 13, 14, 15, 16, 17, 18, 19],
  codeLength: 0,
};

/** The brand whose range the digits lie in, by the longest range that they decide. */
export function brandOf(digits: string): Brand {
  let found = unknownBrand;
  let length = 0;
  for (const one of brands) {
    for (const [from, to] of one.ranges) {
      const head = digits.slice(0, from.length);
      if (head.length < from.length || head < from || head > to) continue;
      if (from.length > length) {
        found = one;
        length = from.length;
      }
    }
  }
  return found;
}

export function badgeOf(name: string): string {
  return brands.find((one) => one.name === name)?.badge ?? name.slice(0, 5).toUpperCase();
}

/** The checksum of ISO/IEC 7812-1. */
export function passesLuhn(digits: string): boolean {
  let sum = 0;
  for (let at = 0; at < digits.length; at += 1) {
    const digit = Number(digits[digits.length - 1 - at]);
    const doubled = at % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}

/** The checksum of an ABA routing number. */
export function passesRouting(digits: string): boolean {
  const weights = [3, 7, 1];
  const sum = [...digits].reduce(
    (all, digit, at) => all + Number(digit) * (weights[at % 3] ?? 0),
    0,
  );
  return digits.length === 9 && sum > 0 && sum % 10 === 0;
}

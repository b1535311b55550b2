/** Check digits and card prefixes: what a number shows without a directory. */

const digitsPattern = /^[0-9]+$/;

/** True when the digits satisfy the Luhn formula, ISO/IEC 7812-1 annex B. Their number is not checked. */
export function luhnValid(digits: string): boolean {
  if (!digitsPattern.test(digits)) return false;
  let sum = 0;
  for (let index = 0; index < digits.length; index += 1) {
    const digit = Number(digits[index]);
    const doubled = (digits.length - index) % 2 === 0;
    sum += doubled ? digit * 2 - (digit > 4 ? 9 : 0) : digit;
  }
  return sum % 10 === 0;
}

const abaPattern = /^[0-9]{9}$/;
const abaWeights = [3, 7, 1];

/** True for nine digits whose 3-7-1 weighted sum is a multiple of ten (ANSI X9.100-160). */
export function abaValid(digits: string): boolean {
  if (!abaPattern.test(digits)) return false;
  let sum = 0;
  for (let index = 0; index < 9; index += 1) {
    sum += Number(digits[index]) * (abaWeights[index % 3] ?? 0);
  }
  return sum % 10 === 0;
}

/**
 * The valid first two digits: the twelve Federal Reserve districts after the government's 00, the same districts for
 * thrift institutions (+20) and electronic transactions (+60), and 80 for traveler's checks. No other prefix was ever
 * assigned.
 */
const abaPrefixes = [
  [0, 12],
  [21, 32],
  [61, 72],
  [80, 80],
] as const;

/** True for a routing number that could be a bank's. Only a directory can confirm that it is one. */
export function abaAssignable(digits: string): boolean {
  const prefix = Number(digits.slice(0, 2));
  return abaValid(digits) && abaPrefixes.some(([from, to]) => prefix >= from && prefix <= to);
}

/**
 * Issuer prefixes by brand, single or as an inclusive range of equal length. 622126–622925 and
 * 624–626 are listed by two networks: Discover only routes those cards, the brand on them is
 * UnionPay. The JCB prefixes below 3528 are no longer issued but still in acquirers' tables. Elo
 * gives its table to members only; its rows are the ranges on which open card libraries agree, and
 * a newer Elo card shows as Visa or Discover, whose ranges it is carved from.
 */
const prefixesByBrand = {
  'american-express': ['34', '37'],
  'diners-club': ['300-305', '3095', '36', '38-39'],
  discover: ['6011', '644-649', '65'],
  elo: [
    '401178-401179',
    '431274',
    '438935',
    '451416',
    '457393',
    '457631-457632',
    '504175',
    '506699-506778',
    '509',
    '627780',
    '636297',
    '636368-636369',
    '650031-650033',
    '650035-650051',
    '650405-650439',
    '650485-650538',
    '650541-650598',
    '650700-650718',
    '650720-650727',
    '650901-650978',
    '651652-651679',
    '655000-655019',
    '655021-655058',
  ],
  hipercard: ['3841', '606282'],
  jcb: [
    '1800',
    '2131',
    '3088-3094',
    '3096-3102',
    '3112-3120',
    '3158-3159',
    '3337-3349',
    '3528-3589',
  ],
  mastercard: ['2221-2720', '51-55'],
  mir: ['2200-2204'],
  unionpay: ['62', '8100-8171'],
  visa: ['4'],
} as const satisfies Record<string, readonly string[]>;

export type CardBrand = keyof typeof prefixesByBrand;

/** By the prefix as a number, after a 1 that keeps its length. */
const brandByPrefix = new Map<number, CardBrand>();
for (const [brand, prefixes] of Object.entries(prefixesByBrand)) {
  for (const prefix of prefixes) {
    const [first = '', last = first] = prefix.split('-');
    for (let value = Number(`1${first}`); value <= Number(`1${last}`); value += 1) {
      brandByPrefix.set(value, brand as CardBrand);
    }
  }
}

const prefixLengthMax = 6;
const zero = 0x30;

/** The brand with the longest matching published prefix; `null`, as on the wire, if there is none. */
export function cardBrand(number: string): CardBrand | null {
  let brand: CardBrand | null = null;
  let prefix = 1;
  for (let length = 0; length < prefixLengthMax; length += 1) {
    prefix = prefix * 10 + number.charCodeAt(length) - zero;
    brand = brandByPrefix.get(prefix) ?? brand;
  }
  return brand;
}

/** The issuer digits that PCI DSS 3.4.1 permits to be shown: 6 of a short number, 8 of 16 digits or more. */
export function cardBin(number: string): string {
  return number.slice(0, number.length < 16 ? 6 : 8);
}

/** How many characters an IBAN of each country has (ISO 13616, registry of SWIFT). */
const ibanLengths = new Map(
  (
    'AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 ' +
    'EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 ' +
    'KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 ' +
    'PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 ' +
    'UA29 VA22 VG24 XK20 YE30'
  )
    .split(' ')
    .map((row) => [row.slice(0, 2), Number(row.slice(2))]),
);

/** The length of the IBANs of a country, by its two letters. */
export function ibanLength(country: string): number | undefined {
  return ibanLengths.get(country);
}

/** True for an IBAN without spaces, in capital letters, of the length of its country, with valid check digits. */
export function ibanValid(iban: string): boolean {
  if (!/^[A-Z]{2}[0-9]{2}[A-Z0-9]+$/.test(iban) || iban.length !== ibanLength(iban.slice(0, 2))) {
    return false;
  }
  // ISO 7064, MOD 97-10, over the letters as 10 to 35.
  const digits = `${iban.slice(4)}${iban.slice(0, 4)}`.replace(/[A-Z]/g, (letter) =>
    String(letter.charCodeAt(0) - 55),
  );
  return BigInt(digits) % 97n === 1n;
}

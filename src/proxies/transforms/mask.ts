/** Masks all matches of a pattern in a string. The limit of work bounds the time for any pattern. */
import { MatcherInput, RE2JS, RE2JSSyntaxException } from 're2js';

/** The maximum length of a pattern in characters, and its maximum compiled size in instructions. */
export const patternLengthMax = 500;
export const programSizeMax = 1000;

/**
 * The work limit for one string: characters that the engine reads, times the instructions of the pattern. One unit
 * takes 5 to 45 nanoseconds, as measured.
 */
export const maskWorkMax = 32_000_000;

/** The work units that starting a search costs. */
const searchWork = 100;

/** The number of characters compared or copied in the time of one unit. */
const comparedPerUnit = 16;

export interface Mask {
  readonly pattern: RE2JS;
  /** Exactly one character. */
  readonly replacement: string;
}

/** The reason for refusing a pattern, for the caller. */
export class PatternError extends Error {
  override readonly name = 'PatternError';
}

/** @throws PatternError that states the requirement, and repeats nothing of the pattern. */
export function compilePattern(text: string): RE2JS {
  if (text.length > patternLengthMax) {
    throw new PatternError(`must have at most ${patternLengthMax} characters`);
  }
  if (estimatedSize(text) > 10 * programSizeMax) throw tooLarge();
  const pattern = compile(text);
  if (pattern.programSize() > programSizeMax) throw tooLarge();
  if (pattern.groupCount() > 0) return pattern;
  throw new PatternError('must have at least one capture group, which says what is masked');
}

function tooLarge(): PatternError {
  return new PatternError(
    `must not compile to more than ${programSizeMax} instructions; repeat less often`,
  );
}

function compile(text: string): RE2JS {
  try {
    return RE2JS.compile(text);
  } catch (error) {
    if (/\(\?(?:<?[=!]|>)|\\[1-9k]/.test(text)) {
      throw new PatternError(
        'must be a regular expression of RE2, which has neither lookaround nor backreferences',
      );
    }
    const reason = error instanceof RE2JSSyntaxException ? error.getDescription() : 'not supported';
    throw new PatternError(`must be a regular expression of RE2: ${reason}`);
  }
}

const tokenPattern =
  /\\[xpP]\{[^}]*\}|\\.|\[(?:\\.|[^\]\\])*\]|\(|\)|\{(?<least>\d+)(?:,(?<most>\d*))?\}|./gs;

/** Estimates the number of instructions after expanding repetitions: compiling them would take seconds. */
function estimatedSize(pattern: string): number {
  const groups = [{ size: 0, last: 0 }];
  for (const { 0: token, groups: named } of pattern.matchAll(tokenPattern)) {
    const group = groups.at(-1) ?? { size: 0, last: 0 };
    if (token === '(') {
      groups.push({ size: 2, last: 0 });
    } else if (token === ')' && groups.length > 1) {
      groups.pop();
      const outer = groups.at(-1) ?? group;
      outer.last = group.size;
      outer.size += group.size;
    } else if (named?.['least'] !== undefined) {
      const times = Math.max(Number(named['least']), Number(named['most'] ?? 0), 1);
      group.size += group.last * (times - 1);
      group.last *= times;
    } else {
      group.size += 1;
      group.last = 1;
    }
  }
  return groups.reduce((sum, { size }) => sum + size, 0);
}

/** Ends a search from inside the engine, which has no limits of its own. */
class WorkSpentError extends Error {}

/** The remaining work of a mask. */
class WorkAllowance {
  #left: number;

  constructor(workMax: number) {
    this.#left = workMax;
  }

  use(work: number): void {
    this.#left -= work;
    if (this.#left < 0) throw new WorkSpentError();
  }
}

/** A string that charges for each character that the engine reads: a search may read all of it for each match. */
class PaidText extends String {
  readonly #text: string;
  readonly #size: number;
  readonly #allowance: WorkAllowance;

  constructor(text: string, size: number, allowance: WorkAllowance) {
    super(text);
    this.#text = text;
    this.#size = size;
    this.#allowance = allowance;
  }

  override charCodeAt(index: number): number {
    this.#allowance.use(this.#size);
    return this.#text.charCodeAt(index);
  }

  override indexOf(searched: string, from = 0): number {
    const found = this.#text.indexOf(searched, from);
    const end = found < 0 ? this.#text.length : found;
    this.#allowance.use((end - from) / comparedPerUnit + searchWork);
    return found;
  }
}

/**
 * Returns the string with every match masked: within the match, each occurrence of a captured value is replaced, one
 * replacement per character. `undefined` if that exceeds the work limit. This blocks the thread for up to seconds:
 * see `masking.ts`.
 */
export function maskAtOnce(text: string, mask: Mask, workMax = maskWorkMax): string | undefined {
  try {
    return maskWithin(text, mask, new WorkAllowance(workMax));
  } catch (error) {
    if (error instanceof WorkSpentError) return undefined;
    throw error;
  }
}

function maskWithin(
  text: string,
  { pattern, replacement }: Mask,
  allowance: WorkAllowance,
): string {
  const paid = new PaidText(text, pattern.programSize(), allowance);
  const matcher = pattern.matcher(MatcherInput.utf16(paid));
  let masked = '';
  let kept = 0;
  for (;;) {
    allowance.use(searchWork);
    if (!matcher.find()) return masked + text.slice(kept);
    const [begin, end] = [matcher.start(), matcher.end()];
    const values = new Set<string>();
    for (let group = 1; group <= pattern.groupCount(); group += 1) {
      if (matcher.start(group) < 0) continue;
      values.add(text.slice(matcher.start(group), matcher.end(group)));
    }
    values.delete('');
    if (values.size > 0) {
      const match = text.slice(begin, end);
      const hidden = hiddenIn(match, values, allowance);
      masked += text.slice(kept, begin) + withHidden(match, hidden, replacement);
      kept = end;
    }
  }
}

/** Marks the code units of the match that belong to an occurrence of a value, including overlapping ones. */
function hiddenIn(
  match: string,
  values: ReadonlySet<string>,
  allowance: WorkAllowance,
): Uint8Array {
  const hidden = new Uint8Array(match.length);
  for (const value of values) {
    const places = match.length - value.length + 1;
    allowance.use(searchWork + (places * value.length) / comparedPerUnit);
    let end = 0;
    for (let at = match.indexOf(value); at >= 0; at = match.indexOf(value, at + 1)) {
      allowance.use(2);
      hidden.fill(1, Math.max(at, end), at + value.length);
      end = at + value.length;
    }
  }
  return hidden;
}

/** Copies runs of characters: appending single characters would allocate an object for each. */
function withHidden(match: string, hidden: Uint8Array, replacement: string): string {
  const pieces: string[] = [];
  let kept = 0;
  for (let at = hidden.indexOf(1); at >= 0; at = hidden.indexOf(1, kept)) {
    const begin = isWithinCharacter(match, at) ? at - 1 : at;
    const shown = hidden.indexOf(0, at);
    const end = shown < 0 ? match.length : shown;
    pieces.push(match.slice(kept, begin));
    kept = isWithinCharacter(match, end) ? end + 1 : end;
    pieces.push(replacement.repeat(charactersIn(match, begin, kept)));
  }
  pieces.push(match.slice(kept));
  return pieces.join('');
}

/** Whether the code unit is the second half of a surrogate pair. */
function isWithinCharacter(text: string, at: number): boolean {
  return at > 0 && (text.codePointAt(at - 1) ?? 0) > 0xffff;
}

function charactersIn(text: string, begin: number, end: number): number {
  let count = 0;
  for (let at = begin; at < end; at += 1) if (!isWithinCharacter(text, at)) count += 1;
  return count;
}

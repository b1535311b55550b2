/** Finds the modules that code names in `require('…')` and `import('…')`, in linear time and without running it. */

/**
 * Ignores names inside comments, strings, and templates. A regular expression that contains a quote may hide the code
 * after it: a module that is missed here fails when the code is evaluated or runs.
 */
export function requiredModules(code: string): readonly string[] {
  const found = new Set<string>();
  let at = 0;
  while (at < code.length) {
    const end = endOfComment(code, at) ?? endOfText(code, at);
    if (end !== undefined) {
      at = end;
      continue;
    }
    call.lastIndex = at;
    const [whole, single, double] = call.exec(code) ?? [];
    const isCall = whole !== undefined && !/[\w$.]/.test(code[at - 1] ?? '');
    if (isCall) found.add(single ?? double ?? '');
    at += isCall ? whole.length : 1;
  }
  return [...found];
}

/** Repetition is bounded, so that no position takes long. */
const call =
  /(?:require|import)[ \t]{0,9}\(\s{0,99}(?:'([^'\\\n]{0,300})'|"([^"\\\n]{0,300})")\s{0,99}\)/y;

function endOfComment(code: string, at: number): number | undefined {
  if (code[at] !== '/') return undefined;
  if (code[at + 1] === '/') return endAt(code.indexOf('\n', at), code);
  if (code[at + 1] === '*') return endAt(code.indexOf('*/', at + 2), code);
  return undefined;
}

function endOfText(code: string, begin: number): number | undefined {
  const quote = code[begin];
  if (quote !== "'" && quote !== '"' && quote !== '`') return undefined;
  let at = begin + 1;
  while (at < code.length && code[at] !== quote) {
    if (code[at] === '\n' && quote !== '`') return at;
    at += code[at] === '\\' ? 2 : 1;
  }
  return at + 1;
}

function endAt(found: number, code: string): number {
  return found === -1 ? code.length : found + 1;
}

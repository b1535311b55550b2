/** Blocks of code in documents, and what their shell commands call. */

export interface CodeBlock {
  /** The document and the line. */
  readonly place: string;
  readonly language: string;
  /** Without the indentation of a list. */
  readonly code: string;
}

export function codeBlocksOf(path: string, text: string): CodeBlock[] {
  const block = /^([^\S\n]*)```(\w*)\n(.*?)^\1```$/gms;
  return [...text.matchAll(block)].map(
    ({ index, 1: indent = '', 2: language = '', 3: code = '' }) => ({
      place: `${path}:${text.slice(0, index).split('\n').length}`,
      language,
      code: code
        .split('\n')
        .map((line) => line.slice(Math.min(indent.length, line.length)))
        .join('\n'),
    }),
  );
}

/** Command lines, whole: without what a here-document holds, and with continued lines joined. */
function linesOf(code: string): string[] {
  return code
    .replace(/<<-?\s*'?(\w+)'?(.*?)\n.*?^\1$/gms, '$2')
    .replace(/\\\n\s*/g, ' ')
    .split('\n');
}

/** The words after `strongroom` of each command, without redirections. */
export function programWordsIn(code: string): string[][] {
  const command =
    /(?<=(?:^|[|;&(]|npx|\bdo)\s*|\w=\S+\s+)strongroom ((?:'[^']*'|"[^"]*"|[^|;&#<>)'"])+)/g;
  return (
    linesOf(code)
      .flatMap((line) => [...line.matchAll(command)])
      .map(([, words = '']) => words.match(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g) ?? [])
      .map((words) => words.map((word) => word.replace(/['"]/g, '')))
      // A loop over commands.
      .filter((words) => !words.slice(0, 3).some((word) => word.startsWith('$')))
  );
}

/** The method and the path of each request to a vault. */
export function curlRequestsIn(code: string): { method: string; path: string }[] {
  const whole = code.replace(/\\\n\s*/g, ' ');
  return whole.split(/(?=\bcurl )/).flatMap((command) => {
    const target =
      /^curl .*?["'\s](?:\$URL|https?:\/\/(?:127\.0\.0\.1:8080|vault\.example\.com))(\/[^\s"'?]*)/s.exec(
        command,
      )?.[1];
    if (target === undefined) return [];
    const [method] = /(?<=-X )[A-Z]+/.exec(command) ?? [
      / (?:-d|--data(?:-binary)?) /.test(command) ? 'POST' : 'GET',
    ];
    return [{ method, path: target }];
  });
}

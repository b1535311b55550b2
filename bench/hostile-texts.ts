/** Texts of expressions made to be slow to compile. */
import { expressionLengthMax } from '../src/expressions/engine.ts';

/** `piece` as often as there is room for it, after a prefix that makes each text another. */
const filled =
  (begin: string, piece: string, end = '') =>
  (prefix: string): string => {
    const room = expressionLengthMax - prefix.length - begin.length - end.length;
    return prefix + begin + piece.repeat(Math.floor(room / piece.length)) + end;
  };

export const hostileTexts: Readonly<Record<string, (prefix: string) => string>> = {
  outputs: filled('', '{{a}}'),
  'outputs after a comma': filled(',', '{{a}}'),
  'outputs with commas': filled('', '{{a,abs}}'),
  'outputs with filters': filled('', '{{a|abs}}'),
  'outputs that trim': filled('', '{{-a-}} '),
  filters: filled('{{a', '|abs', '}}'),
  'own filters': filled('{{a', "|reveal:1,2,'x','y'", '}}'),
  paths: filled('{{a', `|json:'$${'[?@.a==1]'.repeat(90)}'`, '}}'),
  arguments: filled('{{a|append:1', ',1', '}}'),
  'arguments with names': filled('{{a|append:a:1', ',a:1', '}}'),
  commas: filled('{{a|append:1', ',', '}}'),
  quotes: filled("{{a|append:'a'", ",'a'", '}}'),
  'quotes without end': filled('{{', "'", '}}'),
  operators: filled('{{1', '==1', '}}'),
  not: filled('{{', 'not ', '1}}'),
  or: filled('{{a', ' or a', '}}'),
  ranges: filled('{{a|append:1', ',(1..2)', '}}'),
  members: filled('{{a', '.a', '}}'),
  brackets: filled('{{a', '[0]', '}}'),
  'brackets in brackets': (prefix) => `${prefix}{{${'a['.repeat(1300)}0${']'.repeat(1300)}}}`,
  parentheses: (prefix) => `${prefix}{{${'('.repeat(1900)}1${')'.repeat(1900)}}}`,
  'a long name': filled('{{', 'a', '}}'),
  blanks: filled('{{a', ' ', '}}'),
  words: filled('{{a}}', 'a'),
  'if in if': (prefix) => `${prefix}${'{%if a%}'.repeat(150)}${'{%endif%}'.repeat(150)}`,
  'if after if': filled('', '{%if a%}{%endif%}'),
  'if without end': filled('', '{%if a%}'),
  elsif: filled('{%if a%}', '{%elsif a%}', '{%endif%}'),
  when: filled('{%case a%}{%when 1', ',1', '%}{%endcase%}'),
  whens: filled('{%case a%}', '{%when 1%}', '{%endcase%}'),
  assign: filled('', '{%assign a=1%}'),
  raw: filled('', '{%raw%}{%endraw%}'),
  comment: filled('', '{%comment%}{%endcomment%}'),
};

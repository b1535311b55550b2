/** `strongroom completion`: the table of commands as a script for a shell. */
import { type CommandTable, groups } from './program.ts';
import { type Command, operandsOf, UsageError } from './terminal/command.ts';

/** A command as shells complete it. */
interface Word {
  readonly text: string;
  readonly title: string;
}

interface CompletedFlag extends Word {
  readonly takesText: boolean;
  /** The values that it can have, if that is a short list. */
  readonly choices: readonly string[];
}

interface Completed {
  readonly name: string;
  readonly title: string;
  readonly flags: readonly CompletedFlag[];
  readonly choices: readonly string[];
}

const scripts: Readonly<Record<string, (all: readonly Completed[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

export function completionOf(table: CommandTable): Command {
  return {
    summary: 'Print a script that completes commands and options in a shell.',
    flags: {},
    operand: {
      name: 'SHELL',
      meaning: 'bash, zsh or fish',
      choices: Object.keys(scripts),
    },
    examples: [
      'bash > /etc/bash_completion.d/strongroom',
      'zsh > ~/.zfunc/_strongroom',
      'fish > ~/.config/fish/completions/strongroom.fish',
    ],
    run: async ({ SHELL: shell }, { stdout }) => {
      const script = typeof shell === 'string' ? scripts[shell] : undefined;
      if (script === undefined) throw new UsageError('the SHELL must be bash, zsh or fish');
      stdout.write(script(await completedOf(table)));
      return 0;
    },
  };
}

function completedOf(table: CommandTable): Promise<Completed[]> {
  return Promise.all(
    Object.entries(table).map(async ([name, { title, load }]) => {
      const command = await load();
      const { flags } = command;
      const [operand] = operandsOf(command);
      const own = Object.entries(flags).map(([flag, { kind, meaning, choices = [] }]) => ({
        text: `--${flag}`,
        title: meaning,
        takesText: kind === 'string',
        choices,
      }));
      const help = { text: '--help', title: 'print help', takesText: false, choices: [] };
      return { name, title, flags: [...own, help], choices: operand?.choices ?? [] };
    }),
  );
}

/** The flags of all commands whose values are a short list, each after the words of its command. */
function flagsWithChoices(all: readonly Completed[]) {
  return all.flatMap(({ name, flags }) =>
    flags
      .filter(({ choices }) => choices.length > 0)
      .map(({ text, choices }) => ({ name, text, choices })),
  );
}

/** The words that can follow those of a group. Under the empty string, the first words. */
function treeOf(all: readonly Completed[]): ReadonlyMap<string, readonly Word[]> {
  const tree = new Map<string, Word[]>();
  for (const { name, title } of all) {
    const words = name.split(' ');
    for (const [index, text] of words.entries()) {
      const group = words.slice(0, index).join(' ');
      const known = tree.get(group) ?? [];
      tree.set(group, known);
      if (known.some((word) => word.text === text)) continue;
      const own = groups[words.slice(0, index + 1).join(' ')] ?? '';
      known.push({ text, title: index + 1 === words.length ? title : own });
    }
  }
  return tree;
}

/** The words at the beginning, and those that follow each group. */
function firstAndNested(all: readonly Completed[]) {
  const tree = treeOf(all);
  return {
    firsts: tree.get('') ?? [],
    nested: [...tree].filter(([group]) => group !== ''),
  };
}

/** The flags and operands that follow the words of a command. */
function wordsAfter({ flags, choices }: Completed): string[] {
  return [...choices, ...flags.map(({ text }) => text)];
}

function bashScript(all: readonly Completed[]): string {
  const { firsts, nested } = firstAndNested(all);
  const lines = [
    ...flagsWithChoices(all).map(
      ({ name, text, choices }) => `    "${name} "*"${text} ") words='${choices.join(' ')}' ;;`,
    ),
    ...nested.map(
      ([group, words]) => `    "${group} ") words='${words.map(({ text }) => text).join(' ')}' ;;`,
    ),
    ...all.map((one) => {
      const pattern = `"${one.name} "*`;
      return `    ${pattern}) words='${wordsAfter(one).join(' ')}' ;;`;
    }),
  ];
  return `# bash completion of strongroom
_strongroom() {
  local current=\${COMP_WORDS[COMP_CWORD]} words=''
  local before="\${COMP_WORDS[*]:1:COMP_CWORD-1} "
  case "$before" in
    ' ') words='${firsts.map(({ text }) => text).join(' ')} --help --version' ;;
${lines.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _strongroom strongroom
`;
}

function zshScript(all: readonly Completed[]): string {
  const { firsts, nested } = firstAndNested(all);
  const list = (words: readonly Word[]) =>
    words.map(({ text, title }) => quoted(`${text}:${title.replaceAll(':', '\\:')}`)).join(' ');
  const lines = [
    ...flagsWithChoices(all).map(({ name, text, choices }) => {
      const words = choices.map((choice) => ({ text: choice, title: choice }));
      return `    '${name} '*'${text} ') choices=(${list(words)}) ;;`;
    }),
    ...nested.map(([group, words]) => `    '${group} ') choices=(${list(words)}) ;;`),
    ...all.map((one) => {
      const choices = one.choices.map((text) => ({ text, title: text }));
      return `    '${one.name} '*) choices=(${list([...choices, ...one.flags])}) ;;`;
    }),
  ];
  return `#compdef strongroom
_strongroom() {
  local -a choices
  local before="\${(j: :)words[2,CURRENT-1]} "
  case "$before" in
    ' ') choices=(${list(firsts)}) ;;
${lines.join('\n')}
  esac
  _describe 'strongroom' choices || _files
}
compdef _strongroom strongroom
`;
}

function fishScript(all: readonly Completed[]): string {
  const add = (condition: string, more: string) =>
    `complete -c strongroom -n ${quoted(condition)} ${more}`;
  const seen = (name: string) =>
    name
      .split(' ')
      .map((word) => `__fish_seen_subcommand_from ${word}`)
      .join('; and ');
  const { firsts, nested } = firstAndNested(all);
  const offered = [
    ...firsts.map(({ text, title }) =>
      add('__fish_use_subcommand', `-f -a ${text} -d ${quoted(title)}`),
    ),
    ...nested.flatMap(([group, words]) => {
      const others = words.map(({ text }) => text).join(' ');
      const condition = `${seen(group)}; and not __fish_seen_subcommand_from ${others}`;
      return words.map(({ text, title }) => add(condition, `-f -a ${text} -d ${quoted(title)}`));
    }),
  ];
  const others = all.flatMap(({ name, flags, choices }) => [
    ...flags.map(({ text, title, takesText, choices: values }) => {
      const offeredValues = values.length > 0 ? ` -f -a ${quoted(values.join(' '))}` : '';
      const more = `${takesText ? ' -r' : ''}${offeredValues} -d ${quoted(title)}`;
      return add(seen(name), `-l ${text.slice(2)}${more}`);
    }),
    ...choices.map((choice) => add(seen(name), `-f -a ${choice}`)),
  ]);
  return `# fish completion of strongroom\n${[...offered, ...others].join('\n')}\n`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** `strongroom completion`: the table of commands as a script for a shell. */
import { type CommandTable, groups } from './program.ts';
import { idLines, listedResources } from './resources/ids.ts';
import { type Command, operandsOf, UsageError } from './terminal/command.ts';

/** A command as shells complete it. */
interface Word {
  readonly text: string;
  readonly title: string;
}

interface CompletedFlag extends Word {
  readonly takesText: boolean;
  /** The values to offer, if that is a short list. */
  readonly choices: readonly string[];
  /** The resource whose ids are its values. */
  readonly ids: string | undefined;
}

interface Completed {
  readonly name: string;
  readonly title: string;
  readonly flags: readonly CompletedFlag[];
  readonly choices: readonly string[];
  /** The resource whose ids are its first operand. */
  readonly ids: string | undefined;
}

const scripts: Readonly<Record<string, (all: readonly Completed[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

export function completionOf(table: CommandTable): Command {
  return {
    summary:
      'Print a script that completes commands, options and their values in a shell, also after npx. ' +
      'For ids it asks the vault of the current profile.',
    flags: {
      ids: {
        kind: 'string',
        value: 'RESOURCE',
        choices: listedResources,
        meaning: 'print ids that the key may list, each with its name, in place of a script',
      },
    },
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
    run: async ({ SHELL: shell, ids }, terminal) => {
      const { stdout } = terminal;
      if (typeof ids === 'string') {
        const lines = await idLines(terminal, ids);
        stdout.write(lines.map((line) => `${line}\n`).join(''));
        return 0;
      }
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
      const own = Object.entries(flags).map(([flag, one]) => ({
        text: `--${flag}`,
        title: one.meaning,
        takesText: one.kind === 'string',
        choices: one.choices ?? one.offered ?? [],
        ids: one.ids,
      }));
      const none = { takesText: false, choices: [], ids: undefined };
      const help = { text: '--help', title: 'print help', ...none };
      const { choices = [], ids } = operand ?? {};
      return { name, title, flags: [...own, help], choices, ids };
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

/** The flags of all commands whose values are ids, each after the words of its command. */
function flagsWithIds(all: readonly Completed[]) {
  return all.flatMap(({ name, flags }) =>
    flags.flatMap(({ text, ids }) => (ids === undefined ? [] : [{ name, text, ids }])),
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
    ...flagsWithIds(all).map(({ name, text, ids }) => `    "${name} "*"${text} ") ids='${ids}' ;;`),
    ...all.flatMap((one) =>
      one.ids === undefined
        ? []
        : [`    "${one.name} ") ids='${one.ids}' words='${wordsAfter(one).join(' ')}' ;;`],
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
  local program=("\${COMP_WORDS[0]}") current=\${COMP_WORDS[COMP_CWORD]} words='' ids=''
  local before="\${COMP_WORDS[*]:1:COMP_CWORD-1} "
  if [[ $program == npx ]]; then
    program+=(strongroom)
    ((COMP_CWORD == 1)) && COMPREPLY=($(compgen -W strongroom -- "$current"))
    [[ $before == 'strongroom '* ]] || return 0
    before=\${before#strongroom }
    [[ -n $before ]] || before=' '
  fi
  case "$before" in
    ' ') words='${firsts.map(({ text }) => text).join(' ')} --help --version' ;;
${lines.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  # No list of words: compgen would expand what the vault responds.
  if [[ -n $ids && $current != -* ]]; then
    local id
    while IFS=$'\\t' read -r id _; do
      [[ $id == "$current"* ]] && COMPREPLY+=("$id")
    done < <("\${program[@]}" completion --ids "$ids" 2>/dev/null)
  fi
  return 0
}
complete -o default -F _strongroom strongroom npx
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
    ...flagsWithIds(all).map(({ name, text, ids }) => `    '${name} '*'${text} ') ids=${ids} ;;`),
    ...all.flatMap(({ name, ids, flags }) =>
      ids === undefined ? [] : [`    '${name} ') ids=${ids} choices=(${list(flags)}) ;;`],
    ),
    ...nested.map(([group, words]) => `    '${group} ') choices=(${list(words)}) ;;`),
    ...all.map((one) => {
      const choices = one.choices.map((text) => ({ text, title: text }));
      return `    '${one.name} '*) choices=(${list([...choices, ...one.flags])}) ;;`;
    }),
  ];
  return `#compdef strongroom npx
_strongroom() {
  local ids
  local -a choices program=($words[1])
  if [[ $words[1] == npx ]]; then
    if (( CURRENT == 2 )); then compadd strongroom; return; fi
    [[ $words[2] == strongroom ]] || { _files; return; }
    shift words
    (( CURRENT-- ))
    program+=(strongroom)
  fi
  local before="\${(j: :)words[2,CURRENT-1]} "
  case "$before" in
    ' ') choices=(${list(firsts)}) ;;
${lines.join('\n')}
  esac
  if [[ -n $ids ]]; then
    choices+=(\${(f)"$($program completion --ids $ids 2>/dev/null | tr '\\t' ':')"})
  fi
  _describe 'strongroom' choices || _files
}
compdef _strongroom strongroom npx
`;
}

function fishScript(all: readonly Completed[]): string {
  const add = (condition: string, more: string) =>
    `  complete -c $program -n ${quoted(condition)} ${more}`;
  const { firsts, nested } = firstAndNested(all);
  const within = (name: string) => `__strongroom_within ${quoted(name)}`;
  const at = (name: string) => `__strongroom_at ${quoted(name)}`;
  const offered = [
    ...firsts.map(({ text, title }) => add(at(''), `-f -a ${text} -d ${quoted(title)}`)),
    ...nested.flatMap(([group, words]) =>
      words.map(({ text, title }) => add(at(group), `-f -a ${text} -d ${quoted(title)}`)),
    ),
  ];
  const others = all.flatMap(({ name, flags, choices, ids: operand }) => [
    ...flags.map(({ text, title, takesText, choices: values, ids }) => {
      const offer = ids === undefined ? values.join(' ') : idsOffer(ids);
      const offeredValues = offer === '' ? '' : ` -f -a ${quoted(offer)}`;
      const more = `${takesText ? ' -r' : ''}${offeredValues} -d ${quoted(title)}`;
      return add(within(name), `-l ${text.slice(2)}${more}`);
    }),
    ...choices.map((choice) => add(within(name), `-f -a ${choice}`)),
    ...(operand === undefined ? [] : [add(at(name), `-f -a ${quoted(idsOffer(operand))}`)]),
  ]);
  return `# fish completion of strongroom, also after npx
function __strongroom_program
  set -l words (commandline -opc)
  test "$words[1]" = npx; and echo npx
  echo strongroom
end
function __strongroom_words
  set -l words (commandline -opc)
  if test "$words[1]" = npx
    test "$words[2]" = strongroom; or return 1
    set -e words[1]
  end
  string join ' ' -- $words[2..-1]
  return 0
end
function __strongroom_at
  set -l before (__strongroom_words); or return 1
  test "$before" = "$argv[1]"
end
function __strongroom_within
  set -l before (__strongroom_words); or return 1
  string match -q -- "$argv[1] *" "$before "
end
function __strongroom_ids
  set -l program (__strongroom_program)
  $program completion --ids $argv[1] 2>/dev/null
end
complete -c npx -f -n 'test (count (commandline -opc)) -eq 1' -a strongroom
for program in strongroom npx
${[...offered, ...others].join('\n')}
end
`;
}

const idsOffer = (ids: string) => `(__strongroom_ids ${ids})`;

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

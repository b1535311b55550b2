/** The words of a command line, read and explained by commander. */
import { CommanderError, Option, Command as Parser } from 'commander';
import { version } from '../base/installation/manifest.ts';
import { type CommandTable, groups, nameIn, type Selected } from './program.ts';
import { type Command, type Flags, operandsOf, UsageError } from './terminal/command.ts';
import type { Terminal, TerminalOutput } from './terminal/terminal.ts';

const footer = `
Configuration: STRONGROOM_… variables, listed in docs/configuration.md. Check it with: strongroom doctor
Exit codes: 0 done, 1 it failed, 2 the command line is wrong; others are in the help of a command.`;

/** @throws UsageError, which says what would be right, when the words cannot be meant. */
export async function select(
  table: CommandTable,
  given: readonly string[],
  terminal: Terminal,
): Promise<Selected> {
  const [first, ...rest] = given;
  const asksHelp = first === undefined || first === 'help';
  const words = hyphenated(asksHelp ? [...rest, '--help'] : given);
  const name = nameIn(table, words);
  const command = await (name === undefined ? undefined : table[name])?.load();
  const selection: { flags?: Flags } = {};
  const root = createRoot(terminal);
  for (const [other, { title }] of Object.entries(table)) {
    const parser = addTo(root, other, title);
    if (other === name && command) declare(parser, command, selection);
  }
  try {
    await root.parseAsync(words, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    // Help and the version, on request, or the list of commands if one is missing.
    if (error.exitCode === 0) return { code: 0 };
    if (error.code === 'commander.help') return { code: 2 };
    throw new UsageError(problemOf(error, name));
  }
  if (name === undefined || command === undefined) return { code: 0 };
  return { name, command, flags: selection.flags ?? {} };
}

/** What follows `--` is for another program. */
function hyphenated(words: readonly string[]): string[] {
  const end = words.indexOf('--');
  const own = end < 0 ? words.length : end;
  return [...words.slice(0, own).map(withHyphens), ...words.slice(own)];
}

/** Names of options may be spelled as attributes of the API are. */
function withHyphens(word: string): string {
  return word.replace(/^--[a-z]+(?:_[a-z]+)+(?==|$)/, (name) => name.replaceAll('_', '-'));
}

function createRoot({ stdout, stderr }: Terminal): Parser {
  return new Parser('strongroom')
    .description('A tokenization vault that you run yourself.')
    .usage('<command> [options]')
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help, also for each command')
    .helpCommand(false)
    .configureOutput({
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => stderr.write(text),
      outputError: () => undefined,
      getOutHelpWidth: () => widthOf(stdout),
      getErrHelpWidth: () => widthOf(stderr),
    })
    .showSuggestionAfterError()
    .exitOverride()
    .addHelpText('after', footer);
}

/** The parser has a width of its own where there is no terminal. */
function widthOf({ isTTY, columns }: TerminalOutput): number {
  return (isTTY === true ? columns : undefined) as number;
}

function addTo(root: Parser, name: string, title: string): Parser {
  const words = name.split(' ');
  const last = words.pop() ?? '';
  let group = root;
  for (const [index, word] of words.entries()) {
    const known = group.commands.find((parser) => parser.name() === word);
    const description = groups[words.slice(0, index + 1).join(' ')] ?? '';
    group = known ?? group.command(word).description(description).helpCommand(false);
  }
  return group.command(last).description(title);
}

function declare(parser: Parser, command: Command, selection: { flags?: Flags }): void {
  const { summary, flags, examples } = command;
  const operands = operandsOf(command);
  parser.description(summary);
  const options = Object.entries(flags).map(([flag, { kind, value, repeated, meaning }]) => {
    const text = kind === 'boolean' ? `--${flag}` : `--${flag} <${value ?? flag.toUpperCase()}>`;
    const option = new Option(text, meaning);
    if (repeated) option.argParser((next: string, all?: string[]) => [...(all ?? []), next]);
    parser.addOption(option);
    return [flag, option.attributeName()] as const;
  });
  for (const { name, meaning, takesRest } of operands) {
    parser.argument(takesRest ? `[${name}...]` : `[${name}]`, meaning).allowExcessArguments();
  }
  parser.addHelpText('after', examplesOf(parser, examples));
  parser.action(() => {
    const [first] = operands;
    const isOver = parser.args.length > operands.length && !operands.at(-1)?.takesRest;
    if (first && isOver) {
      throw new UsageError(`one ${first.name} at a time`);
    }
    const words = operands.map(({ name, takesRest }, index) => [
      name,
      takesRest ? parser.args.slice(index) : parser.args[index],
    ]);
    const values: Flags = parser.opts();
    const named = options.map(([flag, attribute]) => [flag, values[attribute]]);
    selection.flags = { ...Object.fromEntries(named), ...Object.fromEntries(words) };
  });
}

function examplesOf(parser: Parser, examples: readonly string[]): string {
  const names: string[] = [];
  for (let one: Parser | null = parser; one?.parent; one = one.parent) names.unshift(one.name());
  const name = names.join(' ');
  const lines = examples.map((example) => `  $ strongroom ${name} ${example}`.trimEnd());
  return `\nExamples:\n${lines.join('\n')}`;
}

/** One line, without the text of an option or an argument, which may be a secret. */
function problemOf({ message }: CommanderError, name: string | undefined): string {
  const text = message
    .replace(/^error: /, '')
    .replace(/'(--[^'=]*)=[^']*'/, "'$1'")
    .replace(/(but got \d+): .*/s, '$1')
    .replace(/\.?\s*\n\s*/g, ' ')
    .replace(/\.$/, '');
  const words = name === undefined ? '' : ` ${name}`;
  return `${text}. See: strongroom${words} --help`;
}

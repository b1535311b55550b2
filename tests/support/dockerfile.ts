/** Runs the steps of a Dockerfile without an engine: each stage is a directory, and every path is below it. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, globSync, lstatSync, mkdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

export interface Instruction {
  readonly name: string;
  readonly text: string;
}

/** What was built: the files of the last stage, and how it is started. */
export interface Image {
  readonly directory: string;
  readonly workdir: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Such as ENTRYPOINT: the last of each name, with the paths of this machine. */
  readonly settings: ReadonlyMap<string, string>;
  /** The words of a setting in the form of a JSON array. */
  words(name: string): readonly string[];
}

export interface Building {
  /** Where the Dockerfile is; its `.dockerignore` says what else of it is copied. */
  readonly context: string;
  readonly scratch: string;
  /** Stands for the packages that `npm ci` installs in the directory. */
  readonly install: (directory: string, words: readonly string[]) => void;
}

export function readInstructions(text: string): readonly Instruction[] {
  const joined = text.replace(/^\s*#.*\n/gm, '').replace(/\\\n\s*/g, '');
  return joined
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [, name = '', rest = ''] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? [];
      return { name, text: rest };
    });
}

interface Stage {
  readonly directory: string;
  workdir: string;
}

export function buildImage(building: Building): Image {
  const { context, scratch } = building;
  const included = includedNames(readFileSync(join(context, '.dockerignore'), 'utf8'));
  const stages = new Map<string, Stage>();
  const settings = new Map<string, string>();
  const environment: Record<string, string> = {};
  let stage: Stage = { directory: scratch, workdir: '/' };
  const steps: Readonly<Record<string, (text: string) => void>> = {
    ARG: () => undefined,
    FROM: (text) => {
      const name = /\sAS\s+(\S+)$/.exec(text)?.[1] ?? 'final';
      stage = { directory: join(scratch, name), workdir: '/' };
      for (const folder of ['usr/local/bin', 'usr/local/lib/node_modules/npm']) {
        mkdirSync(join(stage.directory, folder), { recursive: true });
      }
      stages.set(name, stage);
      settings.clear();
    },
    WORKDIR: (text) => {
      stage.workdir = text;
      mkdirSync(join(stage.directory, text), { recursive: true });
    },
    COPY: (text) => {
      const [, from, list = ''] = /^(?:--from=(\S+)\s+)?(.*)$/.exec(text) ?? [];
      const source = from === undefined ? context : stages.get(from)?.directory;
      assert.ok(source, `${from} is a stage`);
      const words = list.split(' ');
      const target = join(stage.directory, stage.workdir, words.at(-1) ?? '');
      const isWanted = (name: string) => from !== undefined || included.has(name);
      for (const word of words.slice(0, -1)) copy({ source, word, target, isWanted });
    },
    RUN: (text) => {
      for (const command of text.split(' && ')) run(command.trim(), stage, building);
    },
    ENV: (text) => {
      for (const [, name = '', value = ''] of text.matchAll(/(\w+)=(\S+)/g)) {
        environment[name] = below(stage, value);
      }
    },
  };
  for (const { name, text } of readInstructions(
    readFileSync(join(context, 'Dockerfile'), 'utf8'),
  )) {
    const step = steps[name];
    if (step) step(text);
    else settings.set(name, text);
  }
  const { directory, workdir } = stage;
  return {
    directory,
    workdir: join(directory, workdir),
    environment,
    settings,
    words: (name) => {
      const list = /\[.*\]$/.exec(settings.get(name) ?? '')?.[0] ?? '[]';
      return (JSON.parse(list) as string[]).map((word) => below(stage, word));
    },
  };
}

/** The form is `*` and names after `!`, all at the top, so that nothing is copied by oversight. */
function includedNames(text: string): ReadonlySet<string> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  assert.equal(lines[0], '*');
  for (const line of lines.slice(1)) assert.match(line, /^!\.?[\w.-]+$/);
  return new Set(lines.slice(1).map((line) => line.slice(1)));
}

interface Copy {
  readonly source: string;
  readonly word: string;
  readonly target: string;
  readonly isWanted: (name: string) => boolean;
}

function copy({ source, word, target, isWanted }: Copy): void {
  const path = join(source, word);
  if (lstatSync(path).isFile()) {
    assert.ok(isWanted(word), `${word} is not excluded`);
    cpSync(path, join(target, basename(word)));
    return;
  }
  for (const name of globSync('{*,.*}', { cwd: path }).filter(isWanted)) {
    cpSync(join(path, name), join(target, name), { recursive: true, verbatimSymlinks: true });
  }
}

/** A path of the image, and nothing else of this machine: what a RUN removes is below the stage. */
function below({ directory }: Stage, word: string): string {
  assert.doesNotMatch(word, /\.\.\/\.\.|\$|`/);
  return word.startsWith('/') ? join(directory, word) : word;
}

function run(command: string, stage: Stage, { install }: Building): void {
  const words = command.split(/\s+/).map((word) => below(stage, word));
  const cwd = join(stage.directory, stage.workdir);
  if (words[0] === 'npm' && words[1] === 'ci') {
    install(cwd, words);
    return;
  }
  const own = process.getuid?.() === 0 ? words : words.filter((word) => !isOwnership(word));
  const done = spawnSync('/bin/sh', ['-c', own.join(' ')], { cwd, encoding: 'utf8' });
  assert.equal(done.status, 0, `${command}\n${done.stdout}${done.stderr}`);
}

/** Only root gives files away. */
function isOwnership(word: string): boolean {
  return /^(?:-o|-g|10001)$/.test(word);
}

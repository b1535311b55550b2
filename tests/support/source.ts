/** The repository's own files as text, for the tests that hold the house to its rules. */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';

export const root = join(import.meta.dirname, '..', '..');

export interface SourceFile {
  /** From the root of the repository, such as `src/base/clock.ts`. */
  readonly path: string;
  readonly text: string;
  /** {@link text} with every comment, string and regular expression blanked; offsets are the same. */
  readonly code: string;
}

export interface Import {
  readonly line: number;
  /** A repository path when the specifier was relative, else the specifier itself. */
  readonly target: string;
}

export function sourceFile(path: string, text: string): SourceFile {
  return { path, text, code: codeOf(text) };
}

/** The files that are or could be committed, as git sees them: nothing ignored, nothing installed. */
export function committedPaths(): string[] {
  const listing = ['ls-files', '--cached', '--others', '--exclude-standard', '-z'];
  const git = spawnSync('git', listing, { cwd: root, encoding: 'utf8' });
  if (git.status !== 0) throw new Error(`git ls-files failed: ${git.stderr}`);
  const paths = git.stdout.split('\0').filter((path) => path !== '');
  return paths.filter((path) => existsSync(join(root, path))).sort();
}

const sources = new Map<string, SourceFile>();

/** The same object for the same path: some twenty rules look at all files. */
export function readSource(path: string): SourceFile {
  const source = sources.get(path) ?? sourceFile(path, readFileSync(join(root, path), 'utf8'));
  sources.set(path, source);
  return source;
}

export function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length;
}

const imports = new WeakMap<SourceFile, readonly Import[]>();

/** Static and dynamic imports and re-exports, of types too. */
export function importsOf(file: SourceFile): readonly Import[] {
  const found = imports.get(file) ?? findImports(file);
  imports.set(file, found);
  return found;
}

function findImports({ path, text, code }: SourceFile): Import[] {
  const statement =
    /\b(?:import|export)\b[^;'"`]*?\bfrom\s*['"]([^'"]+)['"]|\bimport\s*\(?\s*['"]([^'"]+)['"]/g;
  return [...text.matchAll(statement)]
    .filter((match) => code[match.index] !== ' ')
    .map((match) => {
      const specifier = match[1] ?? match[2] ?? '';
      const relative = specifier.startsWith('.');
      const target = relative ? posix.join(posix.dirname(path), specifier) : specifier;
      return { line: lineAt(text, match.index), target };
    });
}

/**
 * One alternative per thing that is not code. A slash begins a regular expression only after a
 * character or word that cannot end an operand. A template ends at its first `${`, and what follows
 * the matching brace is scanned as a template again.
 */
const notCode = new RegExp(
  [
    '(?<comment>//[^\\n]*|/\\*[\\s\\S]*?\\*/)',
    '(?<quoted>\'(?:\\\\[\\s\\S]|[^\'\\\\\\n])*\'|"(?:\\\\[\\s\\S]|[^"\\\\\\n])*")',
    '(?<template>`(?:\\\\[\\s\\S]|\\$(?!\\{)|[^`\\\\$])*(?:`|\\$\\{))',
    '(?<regex>(?<=(?:^|[=(,:;!&|?{}\\[+\\-*~^<>]|\\breturn|\\bcase|=>)\\s*)' +
      '/(?:\\\\.|\\[(?:\\\\.|[^\\]\\\\\\n])*\\]|[^/\\\\\\[\\n])+/[a-z]*)',
  ].join('|'),
  'y',
);

const templateRest = /(?:\\[\s\S]|\$(?!\{)|[^`\\$])*(?:`|\$\{)/y;

/** Blanks what is not code and keeps line breaks and the marks around strings. */
export function codeOf(text: string): string {
  let code = '';
  let at = 0;
  // For every template that is open: how many braces are open inside its current `${`.
  const templates: number[] = [];
  while (at < text.length) {
    const resumed = text[at] === '}' && templates.at(-1) === 0;
    const pattern = resumed ? templateRest : notCode;
    pattern.lastIndex = resumed ? at + 1 : at;
    const match = pattern.exec(text);
    if (match === null) {
      const character = text[at] ?? '';
      const depth = templates.pop();
      if (depth !== undefined) {
        templates.push(depth + (character === '{' ? 1 : 0) - (character === '}' ? 1 : 0));
      }
      code += character;
      at += 1;
      continue;
    }
    const piece = text.slice(at, pattern.lastIndex);
    const opened = piece.endsWith('${') && (resumed || match.groups?.['template'] !== undefined);
    if (resumed) templates.pop();
    if (opened) templates.push(0);
    code += match.groups?.['comment'] === undefined ? blankInside(piece) : blank(piece);
    at = pattern.lastIndex;
  }
  return code;
}

function blank(piece: string): string {
  return piece.replace(/[^\n]/g, ' ');
}

function blankInside(piece: string): string {
  return `${piece.slice(0, 1)}${blank(piece.slice(1, -1))}${piece.slice(-1)}`;
}

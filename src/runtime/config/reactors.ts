/** Whether the code of tenants is run, and the modules that the operator gives it. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type IsolationChoice, isolationChoices } from '../../reactors/sandbox/isolation.ts';
import { type ConfigError, readAll, wrongVariable } from './problems.ts';
import { oneOf } from './values.ts';
import type { ReadVariable } from './variables.ts';

export interface ReactorConfig {
  readonly isOn: boolean;
  /** The only way to keep processes of code apart that may be used; without it the strongest, but not `none`. */
  readonly isolation: IsolationChoice | undefined;
  /** The modules that code can require besides built-in ones: name to CommonJS source. */
  readonly modules: ReadonlyMap<string, string>;
}

const modulesMax = 100;
/** The limit of all modules together, because each call may send them to a process. */
const modulesBytesMax = 5 * 1024 * 1024;

const nameForm = /^(?:@[a-z0-9._-]+\/)?[a-z0-9][a-z0-9._-]*$/;

/** @throws ConfigError for a directory that cannot be read, or holds what is not a module. */
export function readReactors(read: ReadVariable): ReactorConfig {
  return readAll<ReactorConfig>({
    isOn: () => oneOf('STRONGROOM_REACTORS', read('REACTORS') ?? 'on', ['on', 'off']) === 'on',
    isolation: () => readIsolation(read('REACTOR_ISOLATION')),
    modules: () => readModules(read('REACTOR_MODULES')),
  });
}

function readIsolation(text: string | undefined): IsolationChoice | undefined {
  return text === undefined
    ? undefined
    : oneOf('STRONGROOM_REACTOR_ISOLATION', text, isolationChoices);
}

/** Files `<name>.js`, or `@<scope>/<name>.js`, each a bundle without a native part. */
function readModules(directory: string | undefined): ReadonlyMap<string, string> {
  if (directory === undefined) return new Map();
  const modules = new Map<string, string>();
  let bytes = 0;
  for (const file of filesOf(directory)) {
    const name = file.replace(/\.c?js$/, '');
    if (name === file || !nameForm.test(name)) throw wrong(`holds ${file}, which is not a module`);
    const source = contentOf(join(directory, file));
    bytes += source.length;
    modules.set(name, source);
  }
  if (modules.size > modulesMax) throw wrong(`holds more than ${modulesMax} modules`);
  if (bytes > modulesBytesMax) throw wrong(`holds more than ${modulesBytesMax} bytes`);
  return modules;
}

function filesOf(directory: string): readonly string[] {
  return entriesOf(directory).flatMap((entry) => {
    if (!entry.isDirectory()) return entry.name;
    const { name } = entry;
    return entriesOf(join(directory, name)).map((below) => `${name}/${below.name}`);
  });
}

function entriesOf(directory: string) {
  try {
    return readdirSync(directory, { withFileTypes: true });
  } catch {
    throw wrong('names a directory that cannot be read');
  }
}

function contentOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    throw wrong('names a directory with a file that cannot be read');
  }
}

function wrong(problem: string): ConfigError {
  return wrongVariable('STRONGROOM_REACTOR_MODULES', problem);
}

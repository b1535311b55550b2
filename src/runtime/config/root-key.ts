/** Settings of the root key's source. */
import type { ReadRootKeyVariable } from '../../keys/root/root-key.ts';
import { rootKeySourceNames } from '../../keys/root/sources.ts';
import { oneOf } from './values.ts';
import {
  type Environment,
  foreignVariables,
  type ReadVariable,
  rootKeyReaderOf,
} from './variables.ts';

export interface RootKeyConfig {
  /** The value of STRONGROOM_ROOT_KEY_SOURCE, or its default. */
  readonly source: string;
  /** Variables of any source. */
  readonly read: ReadRootKeyVariable;
  readonly file: string;
  /** Variables that are not the vault's. */
  readonly environment: Environment;
}

/** @param file the file where the source `file` has the key. */
export function readRootKey(
  read: ReadVariable,
  { environment, file }: { readonly environment: Environment; readonly file: string },
): RootKeyConfig {
  const given = read('ROOT_KEY') === undefined ? 'file' : 'environment';
  const text = read('ROOT_KEY_SOURCE') ?? given;
  return {
    source: oneOf('STRONGROOM_ROOT_KEY_SOURCE', text, rootKeySourceNames),
    read: rootKeyReaderOf(environment),
    file,
    environment: foreignVariables(environment),
  };
}

/** The root key in a variable of the environment. */
import { localRootKey, parseRootKey } from './local-key.ts';
import { RootKeyError, type RootKeySource } from './root-key.ts';

const variable = 'ROOT_KEY';
const origin = 'environment';

export const environmentSource: RootKeySource = {
  name: 'environment',
  variables: [variable],
  isConfigured: (read) => read(variable) !== undefined,
  open: async ({ read, random }) => {
    const text = read(variable);
    if (text === undefined) {
      throw new RootKeyError('STRONGROOM_ROOT_KEY_SOURCE=environment needs STRONGROOM_ROOT_KEY');
    }
    const keys = [parseRootKey(text, origin)];
    return localRootKey({ source: 'environment', origin, random, load: () => keys });
  },
};

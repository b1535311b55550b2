/** Keys of the source `shamir` in a command, which has none itself: a running server wraps and unwraps with its own. */
import { integrityError } from '../base/errors.ts';
import { type RootKey, type SharedKeys, wrappingKeyOf } from '../keys/root/root-key.ts';
import { shamirName } from '../keys/root/shamir.ts';
import { askServer, socketFile } from './root-key-socket.ts';

/** Those of the server with this data directory, which has to be unsealed. */
export function lentKeys(dataDir: string): SharedKeys {
  const find = async (keyId: string): Promise<RootKey> => {
    await askServer(dataDir, { operation: 'find', key_id: keyId });
    return lentKey(dataDir, keyId);
  };
  return {
    find,
    newest: async () => {
      const { key_id } = await askServer(dataDir, { operation: 'current' });
      return lentKey(dataDir, String(key_id));
    },
  };
}

function lentKey(dataDir: string, keyId: string): RootKey {
  const request = { key_id: keyId };
  return {
    source: shamirName,
    origin: `the key of the server at ${socketFile(dataDir)}`,
    current: async () => ({ keyId, version: 1 }),
    wrap: async (key, { vault, tenant }) => {
      const bytes = key.export().toString('base64');
      const { blob } = await askServer(dataDir, {
        ...request,
        operation: 'wrap',
        key: bytes,
        vault,
        tenant,
      });
      return {
        source: shamirName,
        keyId,
        version: 1,
        blob: Buffer.from(String(blob), 'base64'),
      };
    },
    unwrap: async ({ keyId: wrappedBy, blob: wrapped }, { vault, tenant }) => {
      const blob = Buffer.from(wrapped).toString('base64');
      const { key, altered } = await askServer(dataDir, {
        operation: 'unwrap',
        key_id: wrappedBy,
        blob,
        vault,
        tenant,
      });
      if (altered === true) throw integrityError('a wrapped key is not authentic');
      return wrappingKeyOf(String(key));
    },
    close: () => undefined,
  };
}

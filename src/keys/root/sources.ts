/** The sources of the root key: one row each, and which of them a vault uses. */
import type { KeyObject } from 'node:crypto';
import type { VersionedKeys } from '../envelope.ts';
import { awsKms } from './aws-kms.ts';
import { commandSource } from './command.ts';
import { environmentSource } from './environment.ts';
import { fileSource } from './file.ts';
import type { LocalRootKey } from './local-key.ts';
import {
  type RootKey,
  RootKeyError,
  type RootKeySettings,
  type RootKeySource,
} from './root-key.ts';
import { shamirSource } from './shamir.ts';
import { vaultTransit } from './vault-transit.ts';

/** In the order in which the help lists them. */
const sources: readonly RootKeySource[] = [
  fileSource,
  environmentSource,
  commandSource,
  vaultTransit,
  awsKms,
  shamirSource,
];

export const rootKeySourceNames: readonly string[] = sources.map(({ name }) => name);

/** The names of all variables of sources, without `STRONGROOM_`. */
export const rootKeyVariables: readonly string[] = sources.flatMap(({ variables }) => variables);

/** The root keys that a process can use: one that was chosen, and others that are configured next to it. */
export interface RootKeys {
  /** The one that the configuration names. It wraps in a new vault. */
  readonly chosen: RootKey;
  /**
   * The one that can unwrap what a key of that source and id has wrapped. A key whose bytes are here is known by its
   * id, wherever it was when it wrapped.
   * @throws RootKeyError when it cannot be used.
   */
  unwrapping(wrapped: {
    readonly source: string;
    readonly keyId: string;
  }): Promise<RootKey | undefined>;
  /**
   * The one of that name.
   * @throws RootKeyError when its variables are missing, or it cannot be used.
   */
  named(source: string): Promise<RootKey>;
  /**
   * Checks that a source can be used next to the chosen one.
   * @throws RootKeyError when there is none of that name, or when its variables are missing.
   */
  requireConfigured(source: string): void;
  /** Reads keys again whose bytes are in this process, and forgets those that are gone. */
  reload(): Promise<void>;
  /** How the source of that name makes a new key, if it can. */
  renewal(source: string): SourceRenewal | undefined;
  /** See `LocalRootKey`. */
  sealedDirectly(id: number): Promise<VersionedKeys | undefined>;
  /** The key from which an earlier release derived the name of the vault, if there is one. */
  formerKey(id: number): Promise<KeyObject | undefined>;
  close(): void;
}

/** See `RootKeyRenewal`. */
export interface SourceRenewal {
  begin(inUse: string): Promise<void>;
  end(inUse: string): Promise<void>;
}

export interface RootKeysSettings extends RootKeySettings {
  /** The value of STRONGROOM_ROOT_KEY_SOURCE. */
  readonly source: string;
}

/** @throws RootKeyError when there is no usable root key; nothing has changed then. */
export async function openRootKeys({
  source: chosenName,
  ...settings
}: RootKeysSettings): Promise<RootKeys> {
  const { read, sharedKeys } = settings;
  const opened = new Map<string, Promise<RootKey>>();

  function opening(name: string): Promise<RootKey> {
    const source = sources.find((one) => one.name === name);
    if (source === undefined) {
      return Promise.reject(unknownSource());
    }
    const known = opened.get(name);
    if (known) return known;
    const createIfMissing = settings.createIfMissing && name === chosenName;
    const root = source.open({ ...settings, createIfMissing });
    opened.set(name, root);
    // One that could not be used may be usable later.
    root.catch(() => opened.delete(name));
    return root;
  }

  /** The chosen one first, then others that are in use, or whose variables are set. */
  async function* configured(): AsyncGenerator<RootKey> {
    yield chosen;
    for (const { name, isConfigured } of sources) {
      if (name === chosenName || !(opened.has(name) || isConfigured(read, sharedKeys))) continue;
      const root = await opening(name).catch(() => undefined);
      if (root) yield root;
    }
  }

  /** By its id: what a key wraps while another one replaces it must be its own. */
  async function sharedKey(keyId: string): Promise<RootKey | undefined> {
    const isChosen = chosenName === shamirSource.name;
    try {
      const key = await sharedKeys?.find(keyId);
      return key ?? (isChosen ? chosen : undefined);
    } catch (error) {
      // Without that server, the error of a vault of another source names the source that it needs.
      if (error instanceof RootKeyError && !isChosen) return undefined;
      throw error;
    }
  }

  const chosen = await opening(chosenName);
  return {
    chosen,
    named: opening,
    requireConfigured: (name) => {
      const source = sources.find((one) => one.name === name);
      if (source === undefined) throw unknownSource();
      if (name === chosenName || source.isConfigured(read, sharedKeys)) return;
      if (source === shamirSource) throw new RootKeyError(noSharesText);
      const variables = source.variables.map((variable) => `STRONGROOM_${variable}`).join(', ');
      throw new RootKeyError(
        `the source ${name} is not configured: set its variables (${variables}) next to those of the present one, ` +
          'for this command and for all servers',
      );
    },
    reload: async () => {
      for (const root of opened.values()) {
        const one = await root.catch(() => undefined);
        if (one && isLocal(one)) await one.current();
      }
    },
    renewal: (name) => {
      const renewal = sources.find((one) => one.name === name)?.renewal;
      return (
        renewal && {
          begin: (inUse) => renewal.begin(settings, inUse),
          end: (inUse) => renewal.end(settings, inUse),
        }
      );
    },
    unwrapping: async ({ source: name, keyId }) => {
      const row = sources.find((one) => one.name === name);
      if (row === shamirSource) return sharedKey(keyId);
      if (!localNames.has(name))
        return row?.isConfigured(read, sharedKeys) ? opening(name) : undefined;
      for await (const root of configured()) if (isLocal(root) && root.has(keyId)) return root;
      return undefined;
    },
    sealedDirectly: async (id) => {
      for await (const root of configured()) {
        const keys = isLocal(root) ? root.sealedDirectly(id) : undefined;
        if (keys) return keys;
      }
      return undefined;
    },
    formerKey: async (id) => {
      for await (const root of configured()) {
        const key = isLocal(root) ? root.formerKey(id) : undefined;
        if (key) return key;
      }
      return undefined;
    },
    close: () => {
      for (const root of opened.values()) root.then((one) => one.close()).catch(() => undefined);
    },
  };
}

/**
 * Whether these settings name a key that could unwrap what the source of that name has wrapped. Nothing is opened.
 */
export function canUnwrap(
  name: string,
  { source, read, sharedKeys }: Pick<RootKeysSettings, 'source' | 'read' | 'sharedKeys'>,
): boolean {
  if (name === source) return true;
  if (source === shamirSource.name && sharedKeys === undefined) return false;
  const able = isLocalName(name) ? localNames : new Set([name]);
  if (able.has(source)) return true;
  return sources.some((one) => able.has(one.name) && one.isConfigured(read, sharedKeys));
}

const noSharesText =
  'this command cannot make or use shares of a root key; see "strongroom keys rotate root --help"';

function unknownSource(): RootKeyError {
  const names = rootKeySourceNames.join(', ');
  return new RootKeyError(`the source must be one of ${names}`);
}

/** Sources whose keys have their bytes in this process, so that a key can move from one of them to another. */
const localNames: ReadonlySet<string> = new Set(
  [fileSource, environmentSource, commandSource].map(({ name }) => name),
);

export function isLocal(root: RootKey): root is LocalRootKey {
  return isLocalName(root.source);
}

export function isLocalName(source: string): boolean {
  return localNames.has(source);
}

/** Permissions: one row each, with the holders that may have it and its meaning without an access rule. */

export type ApplicationKind = 'public' | 'private' | 'management';

/** What a key can stand for. */
export type HolderKind = ApplicationKind | 'session';

/** How data is shaped before it leaves, from nothing to everything. */
export type Transform = 'redact' | 'mask' | 'reveal';

export interface PermissionRow {
  readonly description: string;
  readonly kinds: readonly ApplicationKind[];
  /** True when it is exercised on a token in a container, so that access rules may hold it. */
  readonly token: boolean;
  /**
   * Where the whole value goes when the permission is used, whatever the transform; `undefined` where the
   * transform decides what is shown.
   */
  readonly wholeValueTo?: string;
  /** The transform when it is held without an access rule; `undefined` where no data is returned. */
  readonly impliedTransform: Transform | undefined;
  /** True if a person in the console has to prove to be present: it makes keys, or changes who may do what. */
  readonly needsPresence?: true;
}

const client: readonly ApplicationKind[] = ['public', 'private'];
const server: readonly ApplicationKind[] = ['private'];
const management: readonly ApplicationKind[] = ['management'];

const rows = {
  'token:create': onTokens('Create tokens', client, 'mask'),
  'token:update': onTokens('Update tokens', client, 'mask'),
  'token:read': onTokens('Read and detokenize tokens', server, 'mask'),
  'token:search': onTokens('Search tokens', server, 'mask'),
  'token:delete': onTokens('Delete tokens', server, undefined),
  'token:use': sending(
    'Send whole values of tokens to bank verification, and to proxies and reactors that an administrator ' +
      'set up. A destination or code that gives back what it receives shows the value',
    'bank verification, and to destinations and code that an administrator wrote into proxies and reactors',
  ),
  'proxy:invoke': sending(
    'Send requests through proxies, with whole values of tokens in them. A destination that gives back ' +
      'what it receives shows the value',
    'destinations that an administrator wrote into proxies, or that the caller names where the tenant ' +
      'allows ephemeral proxies',
  ),
  'reactor:invoke': sending(
    'Call reactors, with whole values of tokens in what they are given. Code that gives back what it ' +
      'receives shows the value',
    'code that an administrator wrote into reactors',
  ),
  'token-intent:create': elsewhere('Create token intents', client),
  'token-intent:read': elsewhere('Read token intents', server),
  'token-intent:delete': elsewhere('Delete token intents', server),
  'application:read': elsewhere('Read applications and their keys', management),
  'application:create': granting('Create applications and their keys', management),
  'application:update': granting('Update applications', management),
  'application:delete': elsewhere('Delete applications and their keys', management),
  'session:read': elsewhere('Read sessions, without their keys', management),
  'session:delete': elsewhere('End sessions', management),
  'person:read': elsewhere('Read people, and their sessions in the console', management),
  'person:create': granting('Let people into the console, as any application', management),
  'person:update': granting('Change as which applications people act', management),
  'person:delete': elsewhere('Remove people, and end their sessions', management),
  'proxy:read': elsewhere('Read proxies', management),
  'proxy:create': elsewhere('Create proxies', management),
  'proxy:update': elsewhere('Update proxies, and read their configuration', management),
  'proxy:delete': elsewhere('Delete proxies', management),
  'reactor:read': elsewhere('Read reactors, and the logs of their calls', management),
  'reactor:create': elsewhere('Create reactors', management),
  'reactor:update': elsewhere('Update reactors, and read their configuration', management),
  'reactor:delete': elsewhere('Delete reactors', management),
  'webhook:read': elsewhere('Read webhooks and their deliveries', management),
  'webhook:create': elsewhere('Create webhooks', management),
  'webhook:update': elsewhere('Update webhooks, and send events again', management),
  'webhook:delete': elsewhere('Delete webhooks', management),
  'keys:read': elsewhere('Read the keys by which clients encrypt', management),
  'keys:create': elsewhere('Create keys by which clients encrypt', management),
  'keys:delete': elsewhere('Delete keys by which clients encrypt', management),
  'keys:rotate': elsewhere(
    "Rotate and destroy the tenant's own keys, and list them with the rows under each",
    management,
  ),
  'tenant:read': elsewhere('Read the tenant', management),
  'tenant:update': elsewhere('Update the tenant', management),
  'tenant:delete': elsewhere('Delete the tenant', management),
  'log:read': elsewhere('Read logs', management),
  'report:read': elsewhere('Read usage reports', management),
};

export type Permission = keyof typeof rows;

/** Every permission, in the order in which it is listed to callers. */
export const permissions: Readonly<Record<Permission, PermissionRow>> = rows;

function onTokens(
  description: string,
  kinds: readonly ApplicationKind[],
  impliedTransform: Transform | undefined,
): PermissionRow {
  return { description, kinds, token: true, impliedTransform };
}

function sending(description: string, wholeValueTo: string): PermissionRow {
  return { ...onTokens(description, server, 'reveal'), wholeValueTo };
}

function granting(description: string, kinds: readonly ApplicationKind[]): PermissionRow {
  return { ...elsewhere(description, kinds), needsPresence: true };
}

function elsewhere(description: string, kinds: readonly ApplicationKind[]): PermissionRow {
  return { description, kinds, token: false, impliedTransform: undefined };
}

/**
 * Parses a permission; `undefined` if there is none of that name. The published interface spells the permissions of
 * webhooks in two ways.
 */
export function parsePermission(text: string): Permission | undefined {
  const name = text.replace(/^webhooks:/, 'webhook:');
  return Object.hasOwn(rows, name) ? (name as Permission) : undefined;
}

/**
 * True when a holder of this kind may be given the permission. A session may be given what the
 * private application that authorizes it may hold.
 */
export function permissionAllowed(permission: Permission, kind: HolderKind): boolean {
  return permissions[permission].kinds.includes(kind === 'session' ? 'private' : kind);
}

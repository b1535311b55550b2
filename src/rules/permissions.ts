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
  /** True if a person in the console has to prove to be present, except where its routes only read. */
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
  'application:create': managing('Create applications and their keys'),
  'application:update': managing('Update applications'),
  'application:delete': managing('Delete applications and their keys'),
  'session:read': reading('Read sessions, without their keys'),
  'session:delete': managing('End sessions'),
  'person:read': reading('Read people, and their sessions in the console'),
  'person:create': managing('Let people into the console, as any application'),
  'person:update': managing('Change as which applications people act'),
  'person:delete': managing('Remove people, and end their sessions'),
  'approval:read': reading('Read requests of programs that wait for a person'),
  'approval:decide': managing('Approve and deny requests of programs that wait for a person'),
  'proxy:read': reading('Read proxies'),
  'proxy:create': managing('Create proxies'),
  'proxy:update': managing('Update proxies, and read their configuration'),
  'proxy:delete': managing('Delete proxies'),
  'reactor:read': reading('Read reactors, and the logs of their calls'),
  'reactor:create': managing('Create reactors'),
  'reactor:update': managing('Update reactors, and read their configuration'),
  'reactor:delete': managing('Delete reactors'),
  'webhook:read': reading('Read webhooks and their deliveries'),
  'webhook:create': managing('Create webhooks'),
  'webhook:update': managing('Update webhooks, and send events again'),
  'webhook:delete': managing('Delete webhooks'),
  'keys:read': reading('Read the keys by which clients encrypt'),
  'keys:create': managing('Create keys by which clients encrypt'),
  'keys:delete': managing('Delete keys by which clients encrypt'),
  'keys:rotate': managing(
    "Rotate and destroy the tenant's own keys, and list them with the rows under each",
  ),
  'tenant:read': reading('Read the tenant'),
  'tenant:update': managing('Update the tenant'),
  'tenant:delete': managing('Delete the tenant'),
  'log:read': reading('Read logs'),
  'report:read': reading('Read usage reports'),
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

function reading(description: string): PermissionRow {
  return elsewhere(description, management);
}

/** Whoever changes the configuration of a tenant can, at some distance, have its values sent or shown. */
function managing(description: string): PermissionRow {
  return { ...elsewhere(description, management), needsPresence: true };
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

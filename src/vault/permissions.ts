/** Permissions: one row each, who may hold it and what it means without an access rule. */

export type ApplicationKind = 'public' | 'private' | 'management';

/** What a key can stand for. A session may hold what the private application authorising it may. */
export type HolderKind = ApplicationKind | 'session';

/** How data is shaped before it leaves, from nothing to everything. */
export type Transform = 'redact' | 'mask' | 'reveal';

export interface PermissionRow {
  readonly description: string;
  readonly kinds: readonly ApplicationKind[];
  /** True when the permission is about tokens in containers, so that access rules may hold it. */
  readonly token: boolean;
  /** The transform when held without an access rule; absent where no data is returned. */
  readonly impliedTransform?: Transform;
}

const rows = {
  'token:create': {
    ...{ description: 'Create tokens', kinds: ['public', 'private'] },
    ...{ token: true, impliedTransform: 'mask' },
  },
} as const;

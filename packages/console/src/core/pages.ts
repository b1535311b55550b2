/** The pages of the navigation: their names, places, icons, and what a role must hold for them to be of use. */
import type { IconName } from '../ui/icons.tsx';

export interface PageEntry {
  /** As the navigation names it. */
  readonly name: string;
  readonly path: string;
  readonly icon: IconName;
  readonly permission: string;
}

export const pages = [
  { name: 'Overview', path: '/', icon: 'overview', permission: 'report:read' },
  { name: 'Tokens', path: '/tokens', icon: 'tokens', permission: 'token:read' },
  {
    name: 'Applications',
    path: '/applications',
    icon: 'applications',
    permission: 'application:read',
  },
  { name: 'Proxies', path: '/proxies', icon: 'proxies', permission: 'proxy:read' },
  { name: 'Reactors', path: '/reactors', icon: 'reactors', permission: 'reactor:read' },
  { name: 'Webhooks', path: '/webhooks', icon: 'webhooks', permission: 'webhook:read' },
  { name: 'Approvals', path: '/approvals', icon: 'check', permission: 'approval:read' },
  { name: 'Log', path: '/log', icon: 'log', permission: 'log:read' },
  { name: 'Keys', path: '/keys', icon: 'keys', permission: 'keys:rotate' },
  { name: 'People', path: '/people', icon: 'people', permission: 'person:read' },
  { name: 'Settings and quotas', path: '/settings', icon: 'settings', permission: 'tenant:read' },
  { name: 'Problems', path: '/problems', icon: 'problems', permission: 'report:read' },
] as const satisfies readonly PageEntry[];

export type PageName = (typeof pages)[number]['name'];

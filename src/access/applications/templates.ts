/** Application templates: what most applications are, to start from. An application keeps no link. */
import type { Clock } from '../../base/clock.ts';
import { rootContainer } from '../../base/container.ts';
import { VaultError } from '../../base/errors.ts';
import type { WireRule } from '../../rules/access-rules.ts';
import type { Caller } from '../../rules/caller.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';
import {
  type ApplicationKind,
  type Permission,
  permissionAllowed,
  permissions,
  type Transform,
} from '../../rules/permissions.ts';

export interface ApplicationTemplate {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly application_type: ApplicationKind;
  readonly template_type: 'starters' | 'payments' | 'banking' | 'pii' | 'management';
  readonly is_starter: boolean;
  readonly rules: readonly WireRule[];
  readonly permissions: readonly Permission[];
}

type HeldPermissions = readonly Permission[];

const ruleOn = (container: string, held: HeldPermissions, transform: Transform): WireRule[] => [
  { description: `Tokens in ${container}`, priority: 1, container, permissions: held, transform },
];

const heldBy = (
  kind: ApplicationKind,
  wanted: (permission: Permission) => boolean,
): HeldPermissions =>
  (Object.keys(permissions) as Permission[]).filter(
    (permission) => permissionAllowed(permission, kind) && wanted(permission),
  );

const collect: HeldPermissions = ['token:create', 'token:update'];

/** The ids are those under which clients know them. */
const templates: readonly ApplicationTemplate[] = [
  {
    id: '6f486ec1-ddf4-4040-b7f1-3ddca4209495',
    name: 'Full Access',
    description: 'Everything with every token, in plaintext. For prototypes.',
    application_type: 'private',
    template_type: 'starters',
    is_starter: true,
    rules: ruleOn(
      rootContainer,
      heldBy('private', (permission) => permissions[permission].token),
      'reveal',
    ),
    permissions: heldBy('private', (permission) => !permissions[permission].token),
  },
  {
    id: '931b306f-6be7-405d-9a8d-1442a99dd2d7',
    name: 'Full Management Access',
    description: 'Manage the tenant, its applications and their keys, and read its log.',
    application_type: 'management',
    template_type: 'management',
    is_starter: true,
    rules: [],
    permissions: heldBy('management', () => true),
  },
  onContainer('db9148c1-a55f-4164-b830-a20ab6d720ae', 'Collect PCI Data', {
    description: 'Collect cardholder data in a browser or an app.',
    application_type: 'public',
    template_type: 'payments',
    rules: ruleOn('/pci/', collect, 'mask'),
  }),
  onContainer('31efed55-035c-4b49-b1a1-609a728d91ce', 'Use PCI Tokens', {
    description:
      'Send whole card numbers to proxies and reactors. The application sees what their destinations and ' +
      'code give back.',
    application_type: 'private',
    template_type: 'payments',
    rules: ruleOn('/pci/', ['token:use'], 'reveal'),
  }),
  onContainer('e6d4c554-6703-4bbb-b351-42cd2ee5cb5a', 'Read PCI Tokens', {
    description: 'Read cardholder data through its mask.',
    application_type: 'private',
    template_type: 'payments',
    rules: ruleOn('/pci/', ['token:read'], 'mask'),
  }),
  onContainer('d3ea55c1-3b0c-4f4e-9b53-0d8a5c3c3a01', 'Collect Bank Data', {
    description: 'Collect bank accounts in a browser or an app.',
    application_type: 'public',
    template_type: 'banking',
    rules: ruleOn('/bank/', collect, 'mask'),
  }),
  onContainer('d6d8c64c-5a51-4a0e-8f5e-6b1d2f7c9e02', 'Use Bank Tokens', {
    description:
      'Send whole bank accounts to bank verification, proxies and reactors. The application sees what their ' +
      'destinations and code give back.',
    application_type: 'private',
    template_type: 'banking',
    rules: ruleOn('/bank/', ['token:use'], 'reveal'),
  }),
  onContainer('da06cf91-7e27-4c1b-8a64-2f9d4b6e1c03', 'Collect PII Data', {
    description: 'Collect personal data in a browser or an app.',
    application_type: 'public',
    template_type: 'pii',
    rules: ruleOn('/pii/', collect, 'mask'),
  }),
];

function onContainer(
  id: string,
  name: string,
  rest: Omit<ApplicationTemplate, 'id' | 'name' | 'is_starter' | 'permissions'>,
): ApplicationTemplate {
  return { id, name, ...rest, is_starter: false, permissions: [] };
}

interface TemplateReading {
  readonly clock: Clock;
}

export function listTemplates({ clock }: TemplateReading, caller: Caller): Decide {
  const fact = {
    entity: 'application_template',
    id: caller.tenant.id,
    operation: 'list',
  } as const;
  return async () => ({
    change: { entries: [entryOf(caller, clock.now(), fact)] },
    reply: { status: 200, body: templates },
  });
}

/** From the decision `not_found`. */
export function readTemplate({ clock }: TemplateReading, caller: Caller, id: string): Decide {
  return async () => {
    const template = templates.find((one) => one.id === id.toLowerCase());
    if (!template) throw new VaultError('not_found', { public: 'There is no such template.' });
    const fact = { entity: 'application_template', id: template.id, operation: 'read' } as const;
    return {
      change: { entries: [entryOf(caller, clock.now(), fact)] },
      reply: { status: 200, body: template },
    };
  };
}

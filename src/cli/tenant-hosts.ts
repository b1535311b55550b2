/** `strongroom tenant hosts …`: which names a tenant may give to its proxies. */
import { formatTimestamp } from '../base/dates.ts';
import { giveHost, hostsOf, takeHost } from '../proxies/tenant-hosts.ts';
import { comparedName } from '../rules/host-names.ts';
import { perform } from '../rules/operation.ts';
import { type Command, jsonFlag, print, required } from './terminal/command.ts';
import { operatorOf, tenantFlag, withVault } from './terminal/operator.ts';
import { printList } from './terminal/table.ts';

const name = {
  name: 'NAME',
  meaning: 'a DNS name that leads to this vault, without a port',
} as const;

export const tenantHostsAdd: Command = {
  summary:
    'Give a tenant a host name, which one of its proxies can then have as proxy_host: it gets requests with that Host.',
  flags: { tenant: tenantFlag, json: jsonFlag },
  operand: name,
  examples: ['partner.example.com --tenant acme', 'partner.example.com --tenant acme --json'],
  run: (flags, terminal) => {
    const host = comparedName(required(flags, name.name));
    return withVault(terminal, async (vault, { names }) => {
      const operator = await operatorOf(vault, flags);
      const { id } = operator.tenant;
      await perform(
        { store: vault.store, actor: operator },
        giveHost({ ...vault, names }, operator, host),
      );
      print(terminal, flags, {
        json: { name: host, tenant_id: id },
        line: `The tenant "${operator.tenant.name}" (${id}) can give ${host} to a proxy.`,
      });
      return 0;
    });
  },
};

export const tenantHostsList: Command = {
  summary: 'List the host names that a tenant was given.',
  flags: { tenant: tenantFlag, json: jsonFlag },
  examples: ['--tenant acme', '--tenant acme --json'],
  run: (flags, terminal) =>
    withVault(terminal, async (vault) => {
      const { tenant } = await operatorOf(vault, flags);
      printList(terminal, flags, {
        rows: await hostsOf(vault, tenant),
        json: ({ host, tenant_id, created_at }) => ({
          name: host,
          tenant_id,
          created_at: formatTimestamp(created_at),
        }),
        columns: {
          name: ({ host }) => host,
          added: ({ created_at }) => formatTimestamp(created_at),
        },
      });
      return 0;
    }),
};

export const tenantHostsRemove: Command = {
  summary:
    'Take a host name from a tenant; within a second no request with that Host reaches a proxy of it.',
  flags: { tenant: tenantFlag, json: jsonFlag },
  operand: name,
  examples: ['partner.example.com --tenant acme'],
  run: (flags, terminal) => {
    const host = comparedName(required(flags, name.name));
    return withVault(terminal, async (vault) => {
      const operator = await operatorOf(vault, flags);
      const { id } = operator.tenant;
      await perform({ store: vault.store, actor: operator }, takeHost(vault, operator, host));
      print(terminal, flags, {
        json: { name: host, tenant_id: id },
        line: `The tenant "${operator.tenant.name}" (${id}) has the name ${host} no longer.`,
      });
      return 0;
    });
  },
};

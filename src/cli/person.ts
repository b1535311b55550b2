/** `strongroom person …`: who may use the console, also for an operator who cannot sign in any more. */
import {
  consoleSessionsOf,
  endConsoleSession,
  viewConsoleSession,
} from '../access/console-sessions.ts';
import { createAdministratorLink, createLink, linkLifeMs } from '../access/people/links.ts';
import { methodsOf, removeMethod, viewMethod } from '../access/people/methods.ts';
import { createPerson, peopleOf, removePerson } from '../access/people/resource.ts';
import { rolesOf, viewPerson } from '../access/people/row.ts';
import { minute } from '../base/clock.ts';
import { formatTimestamp } from '../base/dates.ts';
import { type PersonId, parseUuid } from '../base/ids.ts';
import type { Operator } from '../rules/caller.ts';
import { perform } from '../rules/operation.ts';
import type { Config } from '../runtime/config/config.ts';
import type { Vault } from '../runtime/open-vault.ts';
import { browserUrl } from './browser-url.ts';
import {
  type Command,
  type Flags,
  jsonFlag,
  print,
  repeated,
  required,
} from './terminal/command.ts';
import { operatorOf, tenantFlag, withVault } from './terminal/operator.ts';
import { printList } from './terminal/table.ts';

const personFlag = {
  kind: 'string',
  value: 'ID',
  meaning: 'id of the person, which `person list` shows',
} as const;

export const personLink: Command = {
  summary:
    'Print a link to the console that signs in once, within ten minutes; without --person as the administrator of ' +
    'the tenant, who has every right.',
  flags: { tenant: tenantFlag, person: personFlag, json: jsonFlag },
  examples: ['--tenant default', '--tenant default --person ID'],
  run: (flags, terminal) =>
    withVault(terminal, async (vault, config) => {
      const operator = await operatorOf(vault, flags);
      const { person } = flags;
      const link = await newLink(vault, operator, typeof person === 'string' ? person : undefined);
      const url = `${await consoleUrl(config, config.port)}#${link.code}`;
      print(terminal, flags, {
        json: { url, person_id: link.person_id, expires_at: link.expires_at },
        line: `Open ${url}\nIt works once, within ${linkLifeMs / minute} minutes.`,
      });
      return 0;
    }),
};

interface LinkBody {
  readonly code: string;
  readonly person_id: string;
  readonly expires_at: string;
}

/** A link for the person, or for the administrator. */
export async function newLink(
  vault: Pick<Vault, 'store' | 'clock' | 'random'>,
  operator: Operator,
  person?: string,
): Promise<LinkBody> {
  const decide =
    person === undefined
      ? createAdministratorLink(vault, operator)
      : createLink(vault, operator, person);
  const { body } = await perform({ store: vault.store, actor: operator }, decide);
  return body as unknown as LinkBody;
}

/** Where people open the console. */
async function consoleUrl({ publicUrl, host, tls }: Config, port: number): Promise<string> {
  const name = host.includes(':') ? `[${host}]` : host;
  const own = `${tls ? 'https' : 'http'}://${name}:${port}`;
  return `${publicUrl ?? (await browserUrl(own))}/console`;
}

export const personAdd: Command = {
  summary: 'Add a person, who acts in the console as the given applications.',
  flags: {
    tenant: tenantFlag,
    name: { kind: 'string', value: 'NAME', meaning: 'name of the person, as the log shows it' },
    application: {
      kind: 'string',
      value: 'ID',
      repeated: true,
      meaning: 'id of an application as which the person may act',
    },
    json: jsonFlag,
  },
  examples: ['--tenant default --name "Ada Lovelace" --application ID'],
  run: (flags, terminal) => {
    const name = required(flags, 'name');
    const applications = repeated(flags, 'application');
    return withVault(terminal, async (vault) => {
      const operator = await operatorOf(vault, flags);
      const { body } = await perform(
        { store: vault.store, actor: operator },
        createPerson(vault, operator, { name, applications }),
      );
      const { id } = body as { readonly id: string };
      print(terminal, flags, {
        json: body as object,
        line: `Added ${name} (${id}). Let them in with "strongroom person link --person ${id}".`,
      });
      return 0;
    });
  },
};

export const personList: Command = {
  summary: 'List the people who may use the console.',
  flags: { tenant: tenantFlag, json: jsonFlag },
  examples: ['--tenant default', '--tenant default --json'],
  run: (flags, terminal) =>
    withVault(terminal, async (vault) => {
      const { tenant } = await operatorOf(vault, flags);
      printList(terminal, flags, {
        rows: await peopleOf(vault.store, tenant),
        json: viewPerson,
        columns: {
          id: ({ person_id }) => person_id,
          name: ({ name }) => name,
          applications: (row) => rolesOf(row).join(', '),
          added: ({ created_at }) => formatTimestamp(created_at),
        },
      });
      return 0;
    }),
};

export const personRemove: Command = {
  summary: 'Remove a person; the next request of each of their sessions is refused.',
  flags: { tenant: tenantFlag, person: personFlag, json: jsonFlag },
  examples: ['--tenant default --person ID'],
  run: (flags, terminal) => {
    const id = required(flags, 'person');
    return withVault(terminal, async (vault) => {
      const operator = await operatorOf(vault, flags);
      await perform({ store: vault.store, actor: operator }, removePerson(vault, operator, id));
      print(terminal, flags, { json: { id }, line: `Removed the person ${id}.` });
      return 0;
    });
  },
};

export const personSessions: Command = {
  summary: 'List the sessions of people in the console, or end one of them.',
  flags: {
    tenant: tenantFlag,
    end: { kind: 'string', value: 'ID', meaning: 'id of a session that ends at once' },
    json: jsonFlag,
  },
  examples: ['--tenant default', '--tenant default --end ID'],
  run: (flags, terminal) =>
    withVault(terminal, async (vault) => {
      const operator = await operatorOf(vault, flags);
      const sessions = await consoleSessionsOf(vault, operator.tenant);
      if (typeof flags['end'] === 'string') return endOne(vault, operator, { flags, terminal });
      printList(terminal, flags, {
        rows: sessions,
        json: viewConsoleSession,
        columns: {
          id: ({ session_id }) => session_id,
          person: ({ person_id }) => person_id,
          address: ({ address }) => address,
          began: ({ created_at }) => formatTimestamp(created_at),
          'ends unless used': ({ idle_at }) => formatTimestamp(idle_at),
        },
      });
      return 0;
    }),
};

export const personMethods: Command = {
  summary: 'List with what a person signs in, such as passkeys, or remove one of these methods.',
  flags: {
    tenant: tenantFlag,
    person: personFlag,
    remove: {
      kind: 'string',
      value: 'ID',
      meaning: 'id of a method that is removed; the sessions of the person end',
    },
    json: jsonFlag,
  },
  examples: ['--tenant default --person ID', '--tenant default --person ID --remove ID'],
  run: (flags, terminal) => {
    const person = required(flags, 'person');
    return withVault(terminal, async (vault) => {
      const operator = await operatorOf(vault, flags);
      if (typeof flags['remove'] === 'string') {
        const method = flags['remove'];
        const removing = removeMethod(vault, operator, { person, method });
        await perform({ store: vault.store, actor: operator }, removing);
        print(terminal, flags, { json: { id: method }, line: `Removed the method ${method}.` });
        return 0;
      }
      const id = parseUuid<PersonId>(person);
      printList(terminal, flags, {
        rows: id ? await methodsOf(vault.store, operator.tenant, id) : [],
        json: viewMethod,
        columns: {
          id: ({ method_id }) => method_id,
          kind: ({ kind }) => kind,
          name: ({ name }) => name,
          added: ({ created_at }) => formatTimestamp(created_at),
          'last used': ({ used_at }) => formatTimestamp(used_at),
        },
      });
      return 0;
    });
  },
};

interface Ending {
  readonly flags: Flags;
  readonly terminal: Parameters<Command['run']>[1];
}

async function endOne(vault: Vault, operator: Operator, { flags, terminal }: Ending) {
  const id = required(flags, 'end');
  const ending = endConsoleSession(vault, operator, { session: id });
  await perform({ store: vault.store, actor: operator }, ending);
  print(terminal, flags, { json: { id }, line: `Ended the session ${id}.` });
  return 0;
}

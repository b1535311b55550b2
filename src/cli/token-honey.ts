/** `strongroom token honey`: tokens that nobody has a reason to use, and whose use raises an alert at once. */
import { parseTokenId } from '../base/ids.ts';
import { entryOf } from '../rules/log-entries.ts';
import { honeyTokens } from '../store/queries/alert-marks.ts';
import { type Command, jsonFlag, print, UsageError } from './terminal/command.ts';
import { operatorOfOnly, soleTenantFlag, withVault } from './terminal/operator.ts';
import { printList } from './terminal/table.ts';

export const tokenHoney: Command = {
  summary:
    'Make a stored token a honey token: whoever reads, uses, changes or tries it raises an alert at once. ' +
    'To everybody it looks like any other token. Without a token, the honey tokens are listed.',
  flags: {
    tenant: soleTenantFlag,
    remove: { kind: 'boolean', meaning: 'make it an ordinary token again' },
    json: jsonFlag,
  },
  operand: { name: 'TOKEN', meaning: 'id of a token that exists' },
  examples: ['TOKEN', 'TOKEN --remove', '--tenant default --json'],
  run: (flags, terminal) =>
    withVault(terminal, async (vault) => {
      const { store, clock } = vault;
      const operator = await operatorOfOnly(vault, flags);
      const tenant_id = operator.tenant.id;
      const token = flags['TOKEN'];
      const marked = await store.select(honeyTokens(tenant_id));
      if (typeof token !== 'string') {
        const rows = marked.map(({ subject }) => subject);
        printList(terminal, flags, {
          rows,
          json: (token_id) => ({ token_id }),
          columns: { token: (id) => id },
        });
        return 0;
      }
      const isMarked = marked.some(({ subject }) => subject === token);
      const key = { tenant_id, kind: 'honey', subject: token, place: '' } as const;
      const operation = flags['remove'] === true ? 'unwatch' : 'watch';
      const token_id = parseTokenId(token);
      const row = token_id && (await store.get('tokens', { tenant_id, token_id }));
      if (operation === 'watch' && row === undefined)
        throw new UsageError('there is no such token');
      if (isMarked !== (operation === 'watch')) {
        const container = row?.container;
        const fact = { entity: 'token', id: token, container, operation } as const;
        const mark = { ...key, created_at: clock.now() };
        await store.commit({
          ...(operation === 'watch'
            ? { insert: { alert_marks: [mark] } }
            : { remove: { alert_marks: [key] } }),
          entries: [entryOf(operator, clock.now(), fact)],
        });
      }
      print(terminal, flags, {
        json: { token_id: token, honey: operation === 'watch' },
        line:
          operation === 'watch'
            ? `The token ${token} is a honey token: its use raises alert.honey_token.`
            : `The token ${token} is an ordinary token.`,
      });
      return 0;
    }),
};

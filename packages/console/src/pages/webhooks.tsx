/** Webhooks: where events go, and a new one. */
import type { Webhook, WebhookRequest } from '@strongroom/client';
import { useState } from 'preact/hooks';
import { useLoad, usePages } from '../core/load.ts';
import { hrefOf, navigate } from '../core/router.ts';
import { vaultFor } from '../core/session.ts';
import { t } from '../texts.ts';
import { Badge, Check, TextField, Time } from '../ui/basics.tsx';
import { Dialog, FormDialog } from '../ui/dialog.tsx';
import { ListPage } from '../ui/page.tsx';
import { SecretOnce } from '../ui/secret.tsx';

export const webhookHref = (id: string): string => hrefOf(`/webhooks/${id}`);

export function WebhooksPage() {
  const webhooks = usePages<Webhook>('webhooks', {
    list: () => vaultFor('webhook:read').webhooks.list(),
    isNumbered: false,
  });
  return (
    <ListPage
      texts={t.webhooks}
      sample={{
        path: '/webhooks',
        typescript: 'for await (const one of vault.webhooks.list()) console.log(one.url);',
        cli: 'npx strongroom webhook list',
      }}
      pages={webhooks}
      keyOf={({ id }) => id}
      hrefOf={({ id }) => webhookHref(id)}
      columns={[
        { head: t.webhooks.name, cell: ({ name }) => name },
        { head: t.webhooks.url, cell: ({ url }) => <code>{url}</code>, isMinor: true },
        {
          head: t.webhooks.status,
          cell: ({ status }) => (
            <Badge tone={status === 'enabled' ? 'good' : 'bad'}>{status}</Badge>
          ),
        },
        { head: t.webhooks.events, cell: ({ events }) => events.length, isNumber: true },
        {
          head: t.applications.created,
          cell: (one) => <Time at={one.created_at} />,
          isMinor: true,
        },
      ]}
      creation={{
        permission: 'webhook:create',
        label: t.webhooks.create,
        form: (close) => <NewWebhook onClose={close} />,
      }}
    />
  );
}

function NewWebhook({ onClose }: { onClose: () => void }) {
  const types = useLoad<readonly string[]>('event types', () =>
    vaultFor('webhook:create').webhooks.eventTypes(),
  );
  const [name, setName] = useState('');
  const [url, setUrl] = useState('');
  const [events, setEvents] = useState<readonly string[]>(['token.created']);
  const [made, setMade] = useState<{ id: string; secret: string } | undefined>(undefined);
  if (made) {
    return (
      <Dialog title={t.webhooks.made} onClose={() => navigate(webhookHref(made.id))}>
        <div class="dialog-body">
          <SecretOnce name={t.webhooks.secret} secret={made.secret} />
        </div>
      </Dialog>
    );
  }
  return (
    <FormDialog
      title={t.webhooks.create}
      submit={t.newApplication.submit}
      isReady={name !== '' && url !== '' && events.length > 0}
      onClose={onClose}
      onSubmit={async () => {
        const request = { name, url, events } as WebhookRequest;
        const { id, secret } = await vaultFor('webhook:create').webhooks.create(request);
        setMade({ id, secret });
      }}
    >
      <TextField label={t.webhooks.name} value={name} onValue={setName} />
      <TextField
        label={t.webhooks.url}
        inputMode="url"
        placeholder="https://example.com/events"
        value={url}
        onValue={setUrl}
      />
      <fieldset>
        <legend>{t.webhooks.events}</legend>
        <div class="checks">
          {(types.data ?? []).map((type) => (
            <Check
              key={type}
              label={<code>{type}</code>}
              checked={events.includes(type)}
              onChange={(checked) =>
                setEvents(checked ? [...events, type] : events.filter((one) => one !== type))
              }
            />
          ))}
        </div>
      </fieldset>
    </FormDialog>
  );
}

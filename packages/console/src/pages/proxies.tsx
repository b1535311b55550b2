/** Proxies: destinations, and trying a call against one. */
import type { Proxy as ProxyDefinition } from '@strongroom/client';
import { useState } from 'preact/hooks';
import { closeDialog, isDialogOpen, openDialog } from '../core/dialogs.ts';
import { useLoad, usePages } from '../core/load.ts';
import { hrefOf, navigate } from '../core/router.ts';
import { may, vaultFor } from '../core/session.ts';
import { t } from '../texts.ts';
import {
  Area,
  Badge,
  Button,
  ErrorNote,
  Facts,
  Id,
  Section,
  Select,
  TextField,
  Time,
  useAction,
} from '../ui/basics.tsx';
import { DestroyDialog, FormDialog } from '../ui/dialog.tsx';
import { ListPage, Page } from '../ui/page.tsx';
import { ReasonField } from '../ui/reason.tsx';

export function ProxiesPage() {
  const proxies = usePages<ProxyDefinition>('proxies', {
    list: (from) => vaultFor('proxy:read').proxies.list(from),
  });
  return (
    <ListPage
      texts={t.proxies}
      sample={{
        path: '/proxies',
        typescript: 'for await (const one of vault.proxies.list()) console.log(one.name);',
        cli: 'npx strongroom proxy list',
      }}
      pages={proxies}
      keyOf={({ id }) => id}
      hrefOf={({ id }) => hrefOf(`/proxies/${id}`)}
      columns={[
        { head: t.applications.name, cell: ({ name }) => name },
        { head: t.proxies.destination, cell: (one) => <code>{one.destination_url}</code> },
        {
          head: t.proxies.auth,
          cell: (one) =>
            one.require_auth ? t.proxies.key : <Badge tone="warn">{t.proxies.open}</Badge>,
          isMinor: true,
        },
        {
          head: t.applications.created,
          cell: (one) => <Time at={one.created_at} />,
          isMinor: true,
        },
      ]}
      creation={{
        permission: 'proxy:create',
        label: t.proxies.create,
        form: (close) => <NewProxy onClose={close} />,
      }}
    />
  );
}

function NewProxy({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState('');
  const [destination, setDestination] = useState('');
  return (
    <FormDialog
      title={t.proxies.create}
      submit={t.newApplication.submit}
      isReady={name !== '' && destination !== ''}
      onClose={onClose}
      onSubmit={async () => {
        const request = { name, destination_url: destination };
        const { id } = await vaultFor('proxy:create').proxies.create(request);
        navigate(hrefOf(`/proxies/${id}`));
      }}
    >
      <TextField label={t.applications.name} value={name} onValue={setName} />
      <TextField
        label={t.proxies.destination}
        hint={t.proxies.destinationHint}
        inputMode="url"
        placeholder="https://psp.example.com/v1"
        value={destination}
        onValue={setDestination}
      />
    </FormDialog>
  );
}

export function ProxyPage({ id }: { id: string }) {
  const proxy = useLoad<ProxyDefinition>(id, () => vaultFor('proxy:read').proxies.get(id));
  const shown = proxy.data;
  return (
    <Page
      title={shown?.name ?? t.proxies.title}
      back={{ href: hrefOf('/proxies'), label: t.proxies.title }}
      lead={<Id id={id} />}
      sample={{
        path: `/proxies/${id}`,
        typescript: `const proxy = await vault.proxies.get('${id}');`,
        cli: `npx strongroom proxy get ${id}`,
      }}
      of={proxy}
      actions={
        may('proxy:delete') && (
          <Button tone="danger" icon="trash" onClick={() => openDialog('delete')}>
            {t.delete}
          </Button>
        )
      }
    >
      {shown && (
        <>
          <TryCall proxy={shown} />
          <Section title={t.token.details}>
            <Facts
              rows={[
                [t.proxies.destination, <code key="to">{shown.destination_url}</code>],
                [t.proxies.proxyKey, <Id key="key" id={shown.key} />],
                [t.proxies.auth, shown.require_auth ? t.proxies.key : t.proxies.open],
                [t.proxies.paths, shown.allowed_paths?.join(', ')],
                [t.proxies.methods, shown.allowed_methods?.join(', ')],
                [t.proxies.timeout, `${shown.timeout} s`],
                [t.proxies.certificate, shown.client_certificate?.subject],
                [t.proxies.requestTransforms, jsonOf(shown.request_transforms)],
                [t.proxies.responseTransforms, jsonOf(shown.response_transforms)],
                [t.proxies.configuration, Object.keys(shown.configuration ?? {}).join(', ')],
              ]}
            />
          </Section>
        </>
      )}
      {isDialogOpen('delete') && shown && (
        <DestroyDialog
          title={t.proxies.deleteTitle}
          text={t.proxies.deleteText}
          name={shown.name}
          onClose={() => closeDialog('delete')}
          onSubmit={async () => {
            await vaultFor('proxy:delete').proxies.delete(id);
            navigate(hrefOf('/proxies'));
          }}
        />
      )}
    </Page>
  );
}

function jsonOf(transforms: readonly unknown[]) {
  return transforms.length === 0 ? undefined : <code>{JSON.stringify(transforms)}</code>;
}

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
const responseShownMax = 20_000;

interface Tried {
  readonly status: number;
  readonly text: string;
  readonly milliseconds: number;
  /** What was sent, with each reference as it was written and never with its value. */
  readonly sent: string;
}

/** A call with references to tokens. The vault writes the values in; the page shows the references. */
function TryCall({ proxy }: { proxy: ProxyDefinition }) {
  const [method, setMethod] = useState<(typeof methods)[number]>('POST');
  const [path, setPath] = useState('/');
  const [body, setBody] = useState<string>(t.proxies.sampleBody);
  const [reason, setReason] = useState('');
  const [tried, setTried] = useState<Tried | undefined>(undefined);
  const { isBusy, error, run } = useAction();
  const send = async () => {
    const begun = performance.now();
    const hasBody = method !== 'GET' && method !== 'DELETE' && body !== '';
    const response = await vaultFor('proxy:invoke', { reason: reason.trim() }).proxy.fetch(path, {
      proxy,
      method,
      ...(hasBody && { body, headers: { 'content-type': 'application/json' } }),
    });
    const text = (await response.text()).slice(0, responseShownMax);
    const milliseconds = Math.round(performance.now() - begun);
    const sent = `${method} ${proxy.destination_url}${path}${hasBody ? `\n\n${body}` : ''}`;
    setTried({ status: response.status, text, milliseconds, sent });
  };
  return (
    <Section title={t.proxies.try} lead={t.proxies.tryLead}>
      <form
        class="panel-body"
        onSubmit={(event) => {
          event.preventDefault();
          void run(send);
        }}
      >
        <div class="pair">
          <Select
            label={t.proxies.method}
            value={method}
            options={methods.map((one) => [one, one])}
            onValue={setMethod}
          />
          <TextField label={t.proxies.path} value={path} onValue={setPath} />
        </div>
        {method !== 'GET' && method !== 'DELETE' && (
          <Area label={t.proxies.body} hint={t.proxies.bodyHint} value={body} onValue={setBody} />
        )}
        <ReasonField hint={t.reason.whole} reason={reason} onReason={setReason} />
        <div class="actions">
          <Button
            type="submit"
            tone="primary"
            icon="play"
            isBusy={isBusy}
            disabled={reason.trim() === ''}
          >
            {t.proxies.send}
          </Button>
        </div>
        <ErrorNote error={error} />
        {tried && (
          <div class="compare" data-testid="tried">
            <div>
              <h3>{t.proxies.sent}</h3>
              <pre class="value-box">{tried.sent}</pre>
              <p class="hint">{t.proxies.sentHint}</p>
            </div>
            <div>
              <h3>
                {t.proxies.received}{' '}
                <Badge tone={tried.status < 400 ? 'good' : 'bad'}>{tried.status}</Badge>{' '}
                <span class="muted">{tried.milliseconds} ms</span>
              </h3>
              <pre class="value-box">{tried.text}</pre>
            </div>
          </div>
        )}
      </form>
    </Section>
  );
}

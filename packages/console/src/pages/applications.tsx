/** Applications: programs and roles of people, with their keys and rules. */
import type { Application, ApplicationRequest, ApplicationTemplate } from '@strongroom/client';
import { useState } from 'preact/hooks';
import { useLoad, usePages } from '../core/load.ts';
import { hrefOf, navigate, place, setFilter } from '../core/router.ts';
import { vaultFor } from '../core/session.ts';
import { t } from '../texts.ts';
import { Badge, Button, Pick, Select, TextField, Time } from '../ui/basics.tsx';
import { Dialog, FormDialog } from '../ui/dialog.tsx';
import { ListPage } from '../ui/page.tsx';
import { SecretOnce } from '../ui/secret.tsx';

const kinds = ['private', 'public', 'management'] as const;
type Kind = (typeof kinds)[number];

export const applicationHref = (id: string): string => hrefOf(`/applications/${id}`);

export function lastUse({ keys }: Application): string | undefined {
  return keys
    .flatMap(({ last_used_at }) => last_used_at ?? [])
    .sort()
    .at(-1);
}

export function ApplicationsPage() {
  const type = (place.value.query.get('type') ?? '') as Kind | '';
  const applications = usePages<Application>(`applications ${type}`, {
    list: (from) =>
      vaultFor('application:read').applications.list({ ...from, ...(type && { type: [type] }) }),
  });
  return (
    <ListPage
      texts={t.applications}
      sample={{
        path: '/applications',
        typescript: 'for await (const one of vault.applications.list()) console.log(one.name);',
        cli: 'npx strongroom app list',
      }}
      pages={applications}
      filters={
        <Pick
          label={t.applications.type}
          value={type}
          options={[['', t.applications.anyType], ...kinds.map((one) => [one, one] as const)]}
          onValue={(chosen) => setFilter({ type: chosen })}
        />
      }
      keyOf={({ id }) => id}
      hrefOf={({ id }) => applicationHref(id)}
      columns={[
        { head: t.applications.name, cell: ({ name }) => name },
        { head: t.applications.type, cell: (one) => <Badge>{one.type}</Badge> },
        { head: t.applications.keys, cell: ({ keys }) => keys.length, isNumber: true },
        {
          head: t.applications.rules,
          cell: ({ rules }) => rules.length,
          isNumber: true,
          isMinor: true,
        },
        { head: t.applications.used, cell: (one) => <Time at={lastUse(one)} />, isMinor: true },
        {
          head: t.applications.created,
          cell: (one) => <Time at={one.created_at} />,
          isMinor: true,
        },
      ]}
      creation={{
        permission: 'application:create',
        label: t.applications.create,
        form: (close) => <NewApplication onClose={close} />,
      }}
    />
  );
}

function NewApplication({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState('');
  const [type, setType] = useState<Kind>('private');
  const [template, setTemplate] = useState('');
  const [made, setMade] = useState<Application | undefined>(undefined);
  const templates = useLoad<readonly ApplicationTemplate[]>('templates', () =>
    vaultFor('application:create').applications.templates(),
  );
  const fitting = (templates.data ?? []).filter((one) => one.application_type === type);
  const chosen = fitting.find(({ id }) => id === template) ?? fitting[0];
  const texts = t.newApplication;
  if (made) {
    return (
      <Dialog title={texts.made} onClose={() => navigate(applicationHref(made.id))}>
        <div class="dialog-body">
          <SecretOnce name={t.application.key} secret={made.key ?? ''} />
          <div class="actions">
            <Button tone="primary" onClick={() => navigate(applicationHref(made.id))}>
              {texts.open}
            </Button>
          </div>
        </div>
      </Dialog>
    );
  }
  return (
    <FormDialog
      title={t.applications.create}
      submit={texts.submit}
      isReady={name.trim() !== '' && chosen !== undefined}
      onClose={onClose}
      onSubmit={async () => {
        const { permissions = [], rules = [] } = chosen ?? {};
        const request = { name: name.trim(), type, permissions, rules } as ApplicationRequest;
        setMade(await vaultFor('application:create').applications.create(request));
      }}
    >
      <TextField label={texts.name} value={name} onValue={setName} placeholder="Checkout" />
      <Select
        label={texts.type}
        hint={texts.kinds[type]}
        value={type}
        onValue={setType}
        options={kinds.map((one) => [one, one])}
      />
      <Select
        label={texts.template}
        hint={chosen?.description ?? texts.templateHint}
        value={chosen?.id ?? ''}
        onValue={setTemplate}
        options={fitting.map((one) => [one.id, one.name])}
      />
    </FormDialog>
  );
}

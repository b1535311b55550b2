/** People: who may use the console, as which applications, and where they are signed in. */
import type {
  Application,
  ConsoleSession,
  Person,
  PersonRequest,
  SignInLink,
  SignInMethod,
} from '@strongroom/client';
import { useState } from 'preact/hooks';
import { closeDialog, isDialogOpen, openDialog, subjectOf, useShownOnce } from '../core/dialogs.ts';
import { useLoad, usePages } from '../core/load.ts';
import { nameOfApplication } from '../core/names.ts';
import { hrefOf, navigate } from '../core/router.ts';
import { may, session, vaultFor } from '../core/session.ts';
import { t } from '../texts.ts';
import {
  Badge,
  Button,
  Check,
  ErrorNote,
  Id,
  Section,
  TextField,
  Time,
  useAction,
} from '../ui/basics.tsx';
import { DestroyDialog, Dialog, FormDialog } from '../ui/dialog.tsx';
import { MethodsTable } from '../ui/methods-table.tsx';
import { ListPage, Page } from '../ui/page.tsx';
import { useGuard } from '../ui/saving.tsx';
import { SecretOnce } from '../ui/secret.tsx';
import { Table } from '../ui/table.tsx';
import { notify } from '../ui/toasts.tsx';

function Roles({ applications }: Pick<Person, 'applications'>) {
  return (
    <span class="badges">
      {applications.map((id) => (
        <Badge key={id}>{nameOfApplication(id)}</Badge>
      ))}
    </span>
  );
}

export function PeoplePage() {
  const people = usePages<Person>('people', {
    list: () => vaultFor('person:read').people.list(),
    isNumbered: false,
  });
  return (
    <ListPage
      texts={t.people}
      sample={{
        path: '/people',
        typescript: 'for await (const one of vault.people.list()) console.log(one.name);',
        cli: 'npx strongroom person list --tenant default',
      }}
      pages={people}
      keyOf={({ id }) => id}
      hrefOf={({ id }) => hrefOf(`/people/${id}`)}
      columns={[
        { head: t.applications.name, cell: ({ name }) => name },
        { head: t.people.roles, cell: (person) => <Roles {...person} /> },
        {
          head: t.people.added,
          cell: (person) => <Time at={person.created_at} />,
          isMinor: true,
        },
      ]}
      creation={{
        permission: 'person:create',
        label: t.people.add,
        form: (close) => (
          <PersonForm
            title={t.people.add}
            onClose={close}
            onSubmit={async (request) => {
              const { id } = await vaultFor('person:create').people.create(request);
              navigate(hrefOf(`/people/${id}`));
            }}
          />
        ),
      }}
    />
  );
}

interface PersonFormProps {
  readonly title: string;
  readonly person?: Person;
  readonly onClose: () => void;
  readonly onSubmit: (request: PersonRequest) => Promise<void>;
}

const editedOf = ({ name, applications }: Person): PersonRequest => ({ name, applications });

function PersonForm({ title, person, onClose, onSubmit }: PersonFormProps) {
  const [name, setName] = useState(person?.name ?? '');
  const [chosen, setChosen] = useState<readonly string[]>(person?.applications ?? []);
  const applications = useLoad<readonly Application[]>('applications of people', () =>
    vaultFor('application:read').applications.list({ size: 100 }).toArray(200),
  );
  return (
    <FormDialog
      title={title}
      submit={t.save}
      isReady={name.trim() !== '' && chosen.length > 0}
      onClose={onClose}
      onSubmit={() => onSubmit({ name: name.trim(), applications: [...chosen] })}
    >
      <TextField
        label={t.applications.name}
        hint={t.people.nameHint}
        value={name}
        onValue={setName}
      />
      <fieldset>
        <legend>{t.people.roles}</legend>
        <p class="hint">{t.people.rolesHint}</p>
        <div class="checks">
          {(applications.data ?? [])
            .filter(({ type }) => type !== 'public')
            .map((one) => (
              <Check
                key={one.id}
                label={
                  <>
                    {one.name} <span class="muted">{one.type}</span>
                  </>
                }
                checked={chosen.includes(one.id)}
                onChange={(checked) =>
                  setChosen(checked ? [...chosen, one.id] : chosen.filter((id) => id !== one.id))
                }
              />
            ))}
        </div>
      </fieldset>
      <ErrorNote error={applications.error} />
    </FormDialog>
  );
}

export function PersonPage({ id }: { id: string }) {
  const person = useLoad<Person>(id, () => vaultFor('person:read').people.get(id));
  const sessions = useLoad<readonly ConsoleSession[]>(`sessions ${id}`, () =>
    vaultFor('person:read').people.sessions(id),
  );
  const methods = useLoad<readonly SignInMethod[]>(`methods ${id}`, () =>
    vaultFor('person:read').people.signInMethods(id),
  );
  const removed = methods.data?.find((one) => one.id === subjectOf('remove-method'));
  const [link, showLink] = useShownOnce<SignInLink>('link');
  const { isBusy, error, run } = useAction();
  const shown = person.data;
  const guard = useGuard({
    read: () => vaultFor('person:read').people.get(id),
    editedOf,
    write: async (request, { etag: ifMatch }) => {
      const saved = await vaultFor('person:update').people.update(
        id,
        request,
        ifMatch === undefined ? {} : { ifMatch },
      );
      person.set(saved);
      return saved;
    },
    show: person.reload,
    textOf: (edited) => JSON.stringify(edited, null, 2),
    onDone: () => closeDialog('edit'),
  });
  return (
    <Page
      title={shown?.name ?? t.people.title}
      back={{ href: hrefOf('/people'), label: t.people.title }}
      badge={session.value?.person.id === id && <Badge tone="accent">{t.people.you}</Badge>}
      sample={{
        method: 'POST',
        path: `/people/${id}/links`,
        typescript: `const { code } = await vault.people.createLink('${id}');`,
        cli: `npx strongroom person link --tenant default --person ${id}`,
      }}
      of={person}
      lead={<Id id={id} />}
      actions={
        <>
          {may('person:update') && (
            <Button onClick={() => openDialog('edit')}>{t.token.edit}</Button>
          )}
          {may('person:delete') && (
            <Button tone="danger" icon="trash" onClick={() => openDialog('remove')}>
              {t.people.remove}
            </Button>
          )}
          {may('person:create') && (
            <Button
              tone="primary"
              isBusy={isBusy}
              onClick={() =>
                void run(async () =>
                  showLink(await vaultFor('person:create').people.createLink(id)),
                )
              }
            >
              {t.people.link}
            </Button>
          )}
        </>
      }
    >
      <ErrorNote error={error} />
      {shown && (
        <Section title={t.people.roles} lead={t.people.rolesLead}>
          <div class="panel-body">
            <Roles {...shown} />
          </div>
        </Section>
      )}
      <Section title={t.people.sessions} lead={t.people.sessionsLead}>
        <ErrorNote error={sessions.error} />
        {sessions.data?.length === 0 ? (
          <p class="muted padded">{t.people.noSessions}</p>
        ) : (
          <Table
            label={t.people.sessions}
            rows={sessions.data ?? []}
            keyOf={(one) => one.id}
            isLoading={sessions.isLoading}
            columns={[
              { head: t.people.began, cell: (one) => <Time at={one.created_at} /> },
              { head: t.log.filters.address, cell: (one) => <code>{one.address}</code> },
              { head: t.people.ends, cell: (one) => <Time at={one.idle_at} />, isMinor: true },
              {
                head: '',
                isNumber: true,
                cell: (one) => (
                  <Button
                    onClick={() =>
                      void run(async () => {
                        await vaultFor('person:delete').people.endSession(id, one.id);
                        notify({ text: t.people.ended });
                        sessions.reload();
                      })
                    }
                  >
                    {t.people.end}
                  </Button>
                ),
              },
            ]}
          />
        )}
      </Section>
      <Section title={t.account.methods}>
        <ErrorNote error={methods.error} />
        {methods.data && (
          <MethodsTable
            methods={methods.data}
            onRemove={
              may('person:delete') ? (one) => openDialog('remove-method', one.id) : undefined
            }
          />
        )}
      </Section>
      {removed && (
        <DestroyDialog
          title={t.account.remove}
          text={t.account.removeTextOf}
          name={removed.name}
          submit={t.account.remove}
          onClose={() => closeDialog('remove-method')}
          onSubmit={async () => {
            await vaultFor('person:delete').people.removeSignInMethod(id, removed.id);
            closeDialog('remove-method');
            methods.reload();
            sessions.reload();
          }}
        />
      )}
      {link && (
        <Dialog title={t.people.link} onClose={() => closeDialog('link')}>
          <div class="dialog-body">
            <SecretOnce
              name={t.people.linkName}
              secret={`${location.origin}/console#${link.code}`}
            />
            <p class="hint">{t.people.linkHint}</p>
          </div>
        </Dialog>
      )}
      {isDialogOpen('edit') && shown && (
        <PersonForm
          title={t.token.edit}
          person={shown}
          onClose={() => closeDialog('edit')}
          onSubmit={(request) => guard.save(request, editedOf(shown))}
        />
      )}
      {guard.conflict}
      {isDialogOpen('remove') && shown && (
        <DestroyDialog
          title={t.people.remove}
          text={t.people.removeText}
          name={shown.name}
          submit={t.people.remove}
          onClose={() => closeDialog('remove')}
          onSubmit={async () => {
            await vaultFor('person:delete').people.delete(id);
            navigate(hrefOf('/people'));
          }}
        />
      )}
    </Page>
  );
}

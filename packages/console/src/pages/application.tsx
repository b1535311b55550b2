/** One application: its keys, its permissions and rules, and what a change of them would mean. */
import type { Application, ApplicationKey, ApplicationUpdate } from '@strongroom/client';
import { closeDialog, isDialogOpen, openDialog, subjectOf, useShownOnce } from '../core/dialogs.ts';
import { useDraft } from '../core/drafts.ts';
import { useLoad } from '../core/load.ts';
import { hrefOf, navigate } from '../core/router.ts';
import { may, vaultFor } from '../core/session.ts';
import { t } from '../texts.ts';
import { Badge, Button, ErrorNote, Id, Section, Time, useAction } from '../ui/basics.tsx';
import { DestroyDialog, Dialog } from '../ui/dialog.tsx';
import { Page } from '../ui/page.tsx';
import { useSaving } from '../ui/saving.tsx';
import { SecretOnce } from '../ui/secret.tsx';
import { Table } from '../ui/table.tsx';
import { notify } from '../ui/toasts.tsx';
import { lastUse } from './applications.tsx';
import { Egress } from './egress.tsx';
import { Explain } from './explain.tsx';
import { ApplicationLimits } from './limits.tsx';
import { type Access, accessOf, RuleEditor } from './rules.tsx';

export function ApplicationPage({ id }: { id: string }) {
  const application = useLoad<Application>(id, () =>
    vaultFor('application:read').applications.get(id),
  );
  const shown = application.data;
  return (
    <Page
      title={shown?.name ?? t.application.title}
      back={{ href: hrefOf('/applications'), label: t.applications.title }}
      badge={shown && <Badge>{shown.type}</Badge>}
      lead={<Id id={id} />}
      sample={{
        path: `/applications/${id}`,
        typescript: `const application = await vault.applications.get('${id}');`,
        cli: `npx strongroom app get ${id}`,
      }}
      of={application}
      actions={
        may('application:delete') && (
          <Button tone="danger" icon="trash" onClick={() => openDialog('delete')}>
            {t.delete}
          </Button>
        )
      }
    >
      {shown && (
        <>
          <Keys application={shown} onChanged={application.reload} />
          <Rules application={shown} onSaved={application.set} />
          <ApplicationLimits application={shown} onSaved={application.set} />
          <Egress application={shown} onSaved={application.set} />
        </>
      )}
      {isDialogOpen('delete') && shown && (
        <DestroyDialog
          title={t.application.deleteTitle}
          text={t.application.deleteText}
          name={shown.name}
          onClose={() => closeDialog('delete')}
          onSubmit={async () => {
            await vaultFor('application:delete').applications.delete(id);
            notify({ text: t.application.deleted });
            navigate(hrefOf('/applications'));
          }}
        />
      )}
    </Page>
  );
}

interface KeysProps {
  readonly application: Application;
  readonly onChanged: () => void;
}

/** A key takes over before the one before it is deleted: that is how it is rotated. */
function Keys({ application, onChanged }: KeysProps) {
  const [made, showMade] = useShownOnce<ApplicationKey>('key-made');
  const ending = application.keys.find(({ id }) => id === subjectOf('delete-key'));
  const { isBusy, error, run } = useAction();
  const create = () =>
    run(async () => {
      showMade(await vaultFor('application:create').applications.keys.create(application.id));
      onChanged();
    });
  return (
    <Section
      title={t.application.keys}
      lead={t.application.keysLead}
      actions={
        may('application:create') && (
          <Button icon="plus" onClick={() => void create()} isBusy={isBusy}>
            {t.application.createKey}
          </Button>
        )
      }
    >
      <ErrorNote error={error} />
      {application.keys.length === 0 ? (
        <p class="muted padded">{t.application.noKeys}</p>
      ) : (
        <Table
          label={t.application.keys}
          rows={application.keys}
          keyOf={({ id }) => id}
          columns={[
            { head: t.application.keyId, cell: ({ id }) => <Id id={id} isShort /> },
            { head: t.applications.created, cell: (key) => <Time at={key.created_at} /> },
            { head: t.applications.used, cell: (key) => <Time at={key.last_used_at} /> },
            {
              head: '',
              cell: (key) =>
                may('application:delete') && (
                  <Button
                    icon="trash"
                    tone="quiet"
                    label={`${t.application.deleteKey} ${key.id}`}
                    onClick={() => openDialog('delete-key', key.id)}
                  />
                ),
              isNumber: true,
            },
          ]}
        />
      )}
      {made && (
        <Dialog title={t.application.keyMade} onClose={() => closeDialog('key-made')}>
          <div class="dialog-body">
            <SecretOnce name={t.application.key} secret={made.key ?? ''} />
            <p class="hint">{t.application.rotate}</p>
          </div>
        </Dialog>
      )}
      {ending && (
        <DestroyDialog
          title={t.application.deleteKey}
          text={t.application.deleteKeyText(lastUse({ ...application, keys: [ending] }))}
          name={ending.id.slice(0, 8)}
          onClose={() => closeDialog('delete-key')}
          onSubmit={async () => {
            const { keys } = vaultFor('application:delete').applications;
            await keys.delete(application.id, ending.id);
            closeDialog('delete-key');
            notify({ text: t.application.keyDeleted });
            onChanged();
          }}
        />
      )}
    </Section>
  );
}

interface RulesProps {
  readonly application: Application;
  readonly onSaved: (application: Application) => void;
}

function Rules({ application, onSaved }: RulesProps) {
  const { id, name, type } = application;
  const draft = useDraft<Access>(`rules ${id}`, accessOf(application));
  const saving = useSaving({
    draft,
    read: () => vaultFor('application:read').applications.get(id),
    editedOf: accessOf,
    write: async (access, { etag: ifMatch }) => {
      const update = { name, ...access } as ApplicationUpdate;
      const vault = vaultFor('application:update');
      const saved = await vault.applications.update(
        id,
        update,
        ifMatch === undefined ? {} : { ifMatch },
      );
      onSaved(saved);
      return saved;
    },
    show: (access) => onSaved({ ...application, ...access } as Application),
    textOf: (access) => JSON.stringify(access, null, 2),
  });
  return (
    <>
      <Section
        title={t.application.rules}
        lead={t.application.rulesLead}
        actions={
          may('application:update') && (
            <>
              <Button disabled={!draft.isChanged} onClick={draft.clear}>
                {t.application.discard}
              </Button>
              <Button
                tone="primary"
                disabled={!draft.isChanged}
                isBusy={saving.isBusy}
                onClick={saving.save}
              >
                {t.application.saveRules}
              </Button>
            </>
          )
        }
      >
        <div class="panel-body">
          {saving.notice}
          <RuleEditor kind={type} access={draft.value} onChange={draft.set} />
        </div>
      </Section>
      <Explain application={application} draft={draft.isChanged ? draft.value : undefined} />
    </>
  );
}

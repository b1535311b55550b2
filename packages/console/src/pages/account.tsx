/** The person who is signed in: roles, and with what the person signs in. */
import { useState } from 'preact/hooks';
import { closeDialog, isDialogOpen, openDialog, subjectOf } from '../core/dialogs.ts';
import { useLoad } from '../core/load.ts';
import { refresh, type Session } from '../core/session.ts';
import {
  addPasskey,
  arePasskeysHere,
  removeOwnMethod,
  waysToSignIn,
} from '../core/sign-in-ways.ts';
import { t } from '../texts.ts';
import { Badge, Button, ErrorNote, Facts, Section, TextField, Time } from '../ui/basics.tsx';
import { DestroyDialog, FormDialog } from '../ui/dialog.tsx';
import { MethodsTable } from '../ui/methods-table.tsx';
import { Page } from '../ui/page.tsx';
import { notify } from '../ui/toasts.tsx';

export function AccountPage({ session }: { readonly session: Session }) {
  const ways = useLoad('ways', waysToSignIn);
  const { person, tenant, applications, sign_in_methods: methods } = session;
  const removed = methods.find(({ id }) => id === subjectOf('remove-method'));
  const { sign_in: way, identity_provider: provider } = session;
  const isForeign = way === 'oidc';
  const isHere = !isForeign && ways.data !== undefined && arePasskeysHere(ways.data);
  return (
    <Page
      title={t.account.title}
      lead={t.account.lead}
      sample={{
        path: `/people/${person.id}/sign-in-methods`,
        typescript: `console.log(await vault.people.signInMethods('${person.id}'));`,
        cli: `npx strongroom person methods --tenant default --person ${person.id}`,
      }}
    >
      <Section title={person.name}>
        <div class="panel-body">
          <Facts
            rows={[
              [t.account.tenant, tenant.name],
              [
                t.people.roles,
                <span class="badges">
                  {applications.map(({ id, name }) => (
                    <Badge key={id}>{name}</Badge>
                  ))}
                </span>,
              ],
              [t.account.ends, <Time at={session.expires_at} />],
            ]}
          />
        </div>
      </Section>
      <Section
        title={t.account.methods}
        lead={isForeign ? t.provider.methods(provider ?? '') : t.account.methodsLead}
        actions={
          isHere && (
            <Button tone="primary" icon="plus" onClick={() => openDialog('add-passkey')}>
              {t.account.add}
            </Button>
          )
        }
      >
        <ErrorNote error={ways.error} />
        {ways.data && !isHere && !isForeign && (
          <p class="muted padded">
            {ways.data.passkey === null ? (
              t.gate.noPasskeys
            ) : (
              <>
                {t.gate.passkeysElsewhere}{' '}
                <a href={`${ways.data.passkey.origin}/console`}>{ways.data.passkey.origin}</a>
              </>
            )}
          </p>
        )}
        <MethodsTable
          methods={methods}
          onRemove={isForeign ? undefined : ({ id }) => openDialog('remove-method', id)}
        />
      </Section>
      {isHere && isDialogOpen('add-passkey') && (
        <NameDialog
          onClose={() => closeDialog('add-passkey')}
          onName={async (name) => {
            await addPasskey(name);
            await refresh();
            closeDialog('add-passkey');
            notify({ text: t.account.added });
          }}
        />
      )}
      {removed && (
        <DestroyDialog
          title={t.account.remove}
          text={t.account.removeText}
          name={removed.name}
          submit={t.account.remove}
          onClose={() => closeDialog('remove-method')}
          onSubmit={async () => {
            await removeOwnMethod(removed.id);
            await refresh();
            closeDialog('remove-method');
          }}
        />
      )}
    </Page>
  );
}

interface NameDialogProps {
  readonly onClose: () => void;
  readonly onName: (name: string) => Promise<void>;
}

function NameDialog({ onClose, onName }: NameDialogProps) {
  const [name, setName] = useState<string>(t.account.nameGiven);
  return (
    <FormDialog
      title={t.account.add}
      submit={t.account.add}
      isReady={name.trim() !== ''}
      onClose={onClose}
      onSubmit={() => onName(name.trim())}
    >
      <TextField
        label={t.account.name}
        hint={t.account.nameHint}
        value={name}
        onValue={setName}
        maxLength={80}
      />
    </FormDialog>
  );
}

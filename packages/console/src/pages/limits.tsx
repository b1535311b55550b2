/** Limits of an application's keys: how many values each may have revealed, and from which pages it is used. */
import type { Application, ApplicationUpdate } from '@strongroom/client';
import { closeDialog, isDialogOpen, openDialog } from '../core/dialogs.ts';
import { useDraft } from '../core/drafts.ts';
import { may } from '../core/session.ts';
import { t } from '../texts.ts';
import { Area, Button, Facts, Section, TextField } from '../ui/basics.tsx';
import { FormDialog } from '../ui/dialog.tsx';
import { usePartGuard } from './application-part.ts';

const dialogName = 'limits';

/** As they are typed. */
interface Limits {
  readonly perHour: string;
  readonly perDay: string;
  readonly origins: string;
}

function limitsOf({ egress_budget: budget, origins }: Application): Limits {
  return {
    perHour: String(budget?.per_hour ?? ''),
    perDay: String(budget?.per_day ?? ''),
    origins: (origins ?? []).join('\n'),
  };
}

function countIn(text: string): number | undefined {
  const typed = text.trim();
  if (typed === '') return undefined;
  if (!/^[0-9]{1,15}$/.test(typed)) throw new Error(t.limits.notWhole);
  return Number(typed);
}

function changeOf({ perHour, perDay, origins }: Limits, isPublic: boolean) {
  const per_hour = countIn(perHour);
  const per_day = countIn(perDay);
  const isNone = per_hour === undefined && per_day === undefined;
  const listed = origins.split(/\s+/).filter((one) => one !== '');
  return {
    egress_budget: isNone ? null : { per_hour, per_day },
    ...(isPublic && { origins: listed.length === 0 ? null : listed }),
  } as Partial<ApplicationUpdate>;
}

interface LimitsProps {
  readonly application: Application;
  readonly onSaved: (application: Application) => void;
}

export function ApplicationLimits({ application, onSaved }: LimitsProps) {
  const draft = useDraft(`limits ${application.id}`, limitsOf(application));
  const isPublic = application.type === 'public';
  const close = () => closeDialog(dialogName);
  const guard = usePartGuard<Limits>({
    application,
    onSaved,
    editedOf: limitsOf,
    changeOf: (limits) => changeOf(limits, isPublic),
    textOf: ({ perHour, perDay, origins }) =>
      [
        `${t.limits.perHour}: ${perHour}`,
        `${t.limits.perDay}: ${perDay}`,
        ...(isPublic ? [`${t.limits.origins}:`, origins] : []),
      ].join('\n'),
    onDone: () => {
      draft.clear();
      close();
    },
  });
  if (application.type === 'management') return null;
  const { perHour, perDay, origins } = draft.value;
  const edit = (change: Partial<Limits>) => draft.set({ ...draft.value, ...change });
  const { egress_budget: budget, origins: pages = [] } = application;
  return (
    <Section
      title={t.limits.title}
      lead={draft.isChanged ? t.limits.unsaved : t.limits.lead}
      actions={
        may('application:update') && (
          <>
            {draft.isChanged && <Button onClick={draft.clear}>{t.application.discard}</Button>}
            <Button onClick={() => openDialog(dialogName)}>{t.limits.edit}</Button>
          </>
        )
      }
    >
      <div class="panel-body">
        <Facts
          rows={[
            [t.limits.perHour, budget?.per_hour ?? t.limits.unlimited],
            [t.limits.perDay, budget?.per_day ?? t.limits.unlimited],
            [
              t.limits.origins,
              isPublic && (pages.length === 0 ? t.limits.anyPage : <code>{pages.join(' ')}</code>),
            ],
          ]}
        />
      </div>
      {isDialogOpen(dialogName) && (
        <FormDialog
          title={t.limits.title}
          submit={t.save}
          isReady={draft.isChanged}
          onClose={close}
          onSubmit={async () => {
            changeOf(draft.value, isPublic);
            await guard.save(draft.value, draft.base);
          }}
        >
          <div class="pair">
            <TextField
              label={t.limits.perHour}
              inputMode="numeric"
              value={perHour}
              onValue={(next) => edit({ perHour: next })}
            />
            <TextField
              label={t.limits.perDay}
              inputMode="numeric"
              value={perDay}
              onValue={(next) => edit({ perDay: next })}
            />
          </div>
          <p class="hint">{t.limits.hint}</p>
          {isPublic && (
            <Area
              label={t.limits.origins}
              hint={t.limits.originsHint}
              rows={4}
              placeholder="https://shop.example.com"
              value={origins}
              onValue={(next) => edit({ origins: next })}
            />
          )}
        </FormDialog>
      )}
      {guard.conflict}
    </Section>
  );
}

/** One webhook: its deliveries with their attempts, sending again, a test event, and its secret. */
import type { Delivery, Webhook, WebhookUpdate } from '@strongroom/client';
import { useEffect, useRef, useState } from 'preact/hooks';
import { closeDialog, isDialogOpen, openDialog, useShownOnce } from '../core/dialogs.ts';
import { type Pages, useLoad, usePages } from '../core/load.ts';
import { hrefOf, navigate, place, setFilter } from '../core/router.ts';
import { may, vaultFor } from '../core/session.ts';
import { t } from '../texts.ts';
import {
  Badge,
  type BadgeTone,
  Button,
  ErrorNote,
  Facts,
  Id,
  Pick,
  Section,
  TextField,
  Time,
  useAction,
} from '../ui/basics.tsx';
import type { RequestSample } from '../ui/copy-as.tsx';
import { DestroyDialog, Dialog, FormDialog } from '../ui/dialog.tsx';
import { Page } from '../ui/page.tsx';
import { SecretOnce } from '../ui/secret.tsx';
import { Table } from '../ui/table.tsx';
import { notify } from '../ui/toasts.tsx';

const states = ['waiting', 'delivered', 'failed'] as const;
const tones: Readonly<Record<Delivery['state'], BadgeTone>> = {
  waiting: 'neutral',
  delivered: 'good',
  failed: 'bad',
};

export function WebhookPage({ id }: { id: string }) {
  const webhook = useLoad<Webhook>(id, () => vaultFor('webhook:read').webhooks.get(id));
  const asked = place.value.query.get('state');
  const state = states.find((one) => one === asked);
  const deliveries = usePages<Delivery>(`deliveries ${id} ${state}`, {
    list: ({ size, start }) => {
      const query = { size, ...(start && { start }), ...(state && { state }) };
      return vaultFor('webhook:read').webhooks.deliveries(id, query);
    },
    isNumbered: false,
  });
  const [secret, showSecret] = useShownOnce<string>('secret');
  const looks = useFollowing(deliveries);
  const isEmpty = !deliveries.isLoading && deliveries.items.length === 0;
  const { isBusy, error, run } = useAction();
  const shown = webhook.data;
  const act = (done: string, work: () => Promise<unknown>) =>
    void run(async () => {
      await work();
      notify({ text: done });
      looks.current = 0;
      deliveries.reload();
    });
  const setStatus = async (status: 'enabled' | 'disabled') => {
    // The page may show what somebody else has changed since.
    const { name, url, events, ordered, notify_email } =
      await vaultFor('webhook:read').webhooks.get(id);
    const update = { name, url, events, ordered, notify_email, status } as WebhookUpdate;
    webhook.set(await vaultFor('webhook:update').webhooks.replace(id, update));
  };
  const other = shown?.status === 'enabled' ? 'disabled' : 'enabled';
  return (
    <Page
      title={shown?.name ?? t.webhooks.title}
      back={{ href: hrefOf('/webhooks'), label: t.webhooks.title }}
      badge={
        shown && <Badge tone={shown.status === 'enabled' ? 'good' : 'bad'}>{shown.status}</Badge>
      }
      lead={<Id id={id} />}
      sample={sampleOf(id)}
      of={webhook}
      actions={
        may('webhook:update') && (
          <Button
            icon="play"
            tone="primary"
            isBusy={isBusy}
            onClick={() =>
              act(t.webhooks.tested, () => vaultFor('webhook:update').webhooks.test(id))
            }
          >
            {t.webhooks.test}
          </Button>
        )
      }
    >
      <ErrorNote error={error} />
      {shown && (
        <Section
          title={t.webhooks.settings}
          actions={
            may('webhook:update') && (
              <>
                <Button
                  onClick={() =>
                    void run(async () => {
                      await setStatus(other);
                      const back = other === 'enabled' ? 'disabled' : 'enabled';
                      notify({ text: t.saved, undo: () => setStatus(back) });
                    })
                  }
                >
                  {other === 'enabled' ? t.webhooks.enable : t.webhooks.disable}
                </Button>
                <Button
                  onClick={() =>
                    void run(async () => {
                      const { secret: made } =
                        await vaultFor('webhook:update').webhooks.rotateSecret(id);
                      showSecret(made);
                    })
                  }
                >
                  {t.webhooks.rotate}
                </Button>
                <Button tone="danger" icon="trash" onClick={() => openDialog('delete')}>
                  {t.delete}
                </Button>
              </>
            )
          }
        >
          <Facts
            rows={[
              [t.webhooks.url, <code key="url">{shown.url}</code>],
              [
                t.webhooks.events,
                <span key="events" class="badges">
                  {shown.events.map((one) => (
                    <Badge key={one}>{one}</Badge>
                  ))}
                </span>,
              ],
              [t.webhooks.ordered, shown.ordered ? t.yes : t.no],
            ]}
          />
        </Section>
      )}
      <Section
        title={t.webhooks.deliveries}
        lead={t.webhooks.deliveriesLead}
        actions={
          <>
            <Pick
              label={t.webhooks.status}
              value={state ?? ''}
              options={[['', t.webhooks.anyState], ...states.map((one) => [one, one] as const)]}
              onValue={(value) => setFilter({ state: value })}
            />
            <Button icon="refresh" label={t.webhooks.refresh} onClick={deliveries.reload} />
            {may('webhook:update') && (
              <Button onClick={() => openDialog('replay')}>{t.webhooks.replay}</Button>
            )}
          </>
        }
      >
        <ErrorNote error={deliveries.error} />
        {!isEmpty && (
          <Table
            label={t.webhooks.deliveries}
            rows={deliveries.items}
            keyOf={(one) => one.id}
            isLoading={deliveries.isLoading}
            pages={deliveries}
            columns={[
              { head: t.webhooks.event, cell: ({ type }) => <code>{type}</code> },
              {
                head: t.webhooks.status,
                cell: (one) => <State delivery={one} />,
              },
              {
                head: t.webhooks.attempts,
                cell: (one) => <Attempts delivery={one} />,
                isMinor: true,
              },
              {
                head: t.applications.created,
                cell: (one) => <Time at={one.created_at} />,
                isMinor: true,
              },
              {
                head: '',
                isNumber: true,
                cell: (one) =>
                  may('webhook:update') && (
                    <Button
                      icon="refresh"
                      tone="quiet"
                      label={`${t.webhooks.again} ${one.id}`}
                      onClick={() =>
                        act(t.webhooks.sentAgain, () =>
                          vaultFor('webhook:update').webhooks.redeliver(id, one.id),
                        )
                      }
                    >
                      {t.webhooks.again}
                    </Button>
                  ),
              },
            ]}
          />
        )}
        {isEmpty && (
          <p class="muted padded">
            {state === undefined ? t.webhooks.noDeliveries : t.webhooks.noneInState(state)}
          </p>
        )}
      </Section>
      {secret !== undefined && (
        <Dialog title={t.webhooks.rotated} onClose={() => closeDialog('secret')}>
          <div class="dialog-body">
            <SecretOnce name={t.webhooks.secret} secret={secret} />
            <p class="hint">{t.webhooks.overlap}</p>
          </div>
        </Dialog>
      )}
      {isDialogOpen('replay') && (
        <Replay id={id} onClose={() => closeDialog('replay')} onDone={deliveries.reload} />
      )}
      {isDialogOpen('delete') && shown && (
        <DestroyDialog
          title={t.webhooks.deleteTitle}
          text={t.webhooks.deleteText}
          name={shown.name}
          onClose={() => closeDialog('delete')}
          onSubmit={async () => {
            await vaultFor('webhook:delete').webhooks.delete(id);
            navigate(hrefOf('/webhooks'));
          }}
        />
      )}
    </Page>
  );
}

/** The first attempt follows within seconds: what came of it is shown without a click. */
const lookMs = 2_000;
const looksMax = 10;

/** @returns how often it has looked in vain. */
function useFollowing({ items, reload }: Pick<Pages<Delivery>, 'items' | 'reload'>) {
  const looks = useRef(0);
  const isUnderWay = items.some((one) => one.state === 'waiting' && one.attempts.length === 0);
  useEffect(() => {
    if (!isUnderWay || looks.current >= looksMax) return undefined;
    const timer = setTimeout(() => {
      looks.current += 1;
      reload();
    }, lookMs);
    return () => clearTimeout(timer);
  }, [items]);
  return looks;
}

/** A delivery that has failed so far is not one that was not tried yet. */
function State({ delivery: { state, attempts, due_at } }: { delivery: Delivery }) {
  if (state !== 'waiting' || attempts.length === 0)
    return <Badge tone={tones[state]}>{state}</Badge>;
  return (
    <>
      <Badge tone="warn">{t.webhooks.retrying}</Badge>{' '}
      <span class="muted">
        {t.webhooks.dueAt} <Time at={due_at} />
      </span>
    </>
  );
}

function Attempts({ delivery: { attempts } }: { delivery: Delivery }) {
  const last = attempts.at(-1);
  if (!last) return <span class="muted">{t.webhooks.noAttempt}</span>;
  return (
    <span>
      {attempts.length} · {last.status ?? last.error ?? ''}{' '}
      <span class="muted">{last.milliseconds} ms</span>
    </span>
  );
}

function Replay({ id, onClose, onDone }: { id: string; onClose: () => void; onDone: () => void }) {
  const [since, setSince] = useState(new Date(Date.now() - 3_600_000).toISOString());
  return (
    <FormDialog
      title={t.webhooks.replay}
      submit={t.webhooks.replay}
      onClose={onClose}
      onSubmit={async () => {
        const { events } = await vaultFor('webhook:update').webhooks.replay(id, { since });
        notify({ text: t.webhooks.replayed(events) });
        onDone();
        onClose();
      }}
    >
      <TextField
        label={t.webhooks.since}
        hint={t.webhooks.sinceHint}
        value={since}
        onValue={setSince}
      />
    </FormDialog>
  );
}

function sampleOf(id: string): RequestSample {
  return {
    path: `/webhooks/${id}/deliveries`,
    typescript: `for await (const one of vault.webhooks.deliveries('${id}')) console.log(one.state);`,
    cli: `npx strongroom webhook get ${id}`,
  };
}

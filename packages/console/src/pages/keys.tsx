/** The tenant's own keys: their versions with the rows under each, and rotations with their progress. */
import type { KeyRotation, KeyRotationRequest, TenantKeys } from '@strongroom/client';
import { useEffect } from 'preact/hooks';
import { closeDialog, openDialog, subjectOf } from '../core/dialogs.ts';
import { number } from '../core/format.ts';
import { useLoad } from '../core/load.ts';
import { vaultFor } from '../core/session.ts';
import { t } from '../texts.ts';
import { Badge, Button, ErrorNote, Section, Time, useAction } from '../ui/basics.tsx';
import { DestroyDialog } from '../ui/dialog.tsx';
import { Meter } from '../ui/meter.tsx';
import { Page } from '../ui/page.tsx';
import { Table } from '../ui/table.tsx';
import { notify } from '../ui/toasts.tsx';

type KeyVersion = TenantKeys['keys'][number];
type Purpose = KeyRotationRequest['purpose'];
const purposes: readonly Purpose[] = ['data', 'search', 'fingerprint', 'webhooks', 'log'];
const refreshMs = 2_000;
const countTimeoutMs = 600_000;

const nameOf = ({ purpose, version }: KeyVersion) => `${purpose} ${version}`;

export function KeysPage() {
  const keys = useLoad<TenantKeys>('keys', () =>
    vaultFor('keys:rotate').tenant.keys({ counts: 'none' }),
  );
  // Counting the rows of a large vault takes longer than anybody waits for a page.
  const counted = useLoad<TenantKeys>('counted keys', () =>
    vaultFor('keys:rotate').tenant.keys({}, { timeout: countTimeoutMs, retries: 0 }),
  );
  const reload = () => {
    keys.reload();
    counted.reload();
  };
  const rowsOf = ({ purpose, version }: KeyVersion) =>
    counted.data?.keys.find((one) => one.purpose === purpose && one.version === version)?.rows;
  const rotations = useLoad<readonly KeyRotation[]>('rotations', () =>
    vaultFor('keys:rotate').tenant.keyRotations(),
  );
  const ending = keys.data?.keys.find((one) => nameOf(one) === subjectOf('destroy'));
  const { isBusy, error, run } = useAction();
  const isUnderWay = (rotations.data ?? []).some(({ finished_at }) => finished_at === undefined);
  useEffect(() => {
    if (!isUnderWay) return undefined;
    const timer = setInterval(rotations.reload, refreshMs);
    return () => {
      clearInterval(timer);
      reload();
    };
  }, [isUnderWay]);
  const rotate = (purpose: Purpose) =>
    void run(async () => {
      await vaultFor('keys:rotate').tenant.rotateKey({ purpose });
      notify({ text: t.keys.started });
      rotations.reload();
    });
  return (
    <Page
      title={t.keys.title}
      lead={t.keys.lead}
      sample={{
        path: '/tenants/self/keys',
        typescript: 'console.log((await vault.tenant.keys()).keys);',
        cli: 'npx strongroom keys list --tenant default',
      }}
      of={keys}
    >
      <ErrorNote error={error} />
      {keys.data &&
        purposes.map((purpose) => {
          const versions = keys.data?.keys.filter((one) => one.purpose === purpose) ?? [];
          const rotation = rotations.data?.find((one) => one.purpose === purpose);
          return (
            <Section
              key={purpose}
              title={t.keys.purposes[purpose]}
              lead={t.keys.about[purpose]}
              actions={
                <Button icon="refresh" isBusy={isBusy} onClick={() => rotate(purpose)}>
                  {t.keys.rotate(purpose)}
                </Button>
              }
            >
              {rotation && <Progress rotation={rotation} />}
              <Table
                label={t.keys.purposes[purpose]}
                rows={versions.toSorted((one, other) => other.version - one.version)}
                keyOf={(one) => String(one.version)}
                columns={[
                  { head: t.keys.version, cell: ({ version }) => version },
                  {
                    head: t.keys.state,
                    cell: ({ state }) => (
                      <Badge tone={state === 'active' ? 'good' : 'neutral'}>{state}</Badge>
                    ),
                  },
                  {
                    head: t.keys.rows,
                    cell: (one) => <Rows rows={rowsOf(one)} isLoading={counted.isLoading} />,
                    isNumber: true,
                  },
                  { head: t.applications.created, cell: (one) => <Time at={one.created_at} /> },
                  {
                    head: '',
                    isNumber: true,
                    cell: (one) =>
                      rowsOf(one) === 0 && one.state === 'decrypt_only' ? (
                        <Button
                          icon="trash"
                          tone="quiet"
                          label={t.keys.destroy(one.version)}
                          onClick={() => openDialog('destroy', nameOf(one))}
                        />
                      ) : null,
                  },
                ]}
              />
            </Section>
          );
        })}
      {ending && (
        <DestroyDialog
          title={t.keys.destroy(ending.version)}
          text={t.keys.destroyText}
          name={nameOf(ending)}
          submit={t.keys.destroySubmit}
          onClose={() => closeDialog('destroy')}
          onSubmit={async () => {
            await vaultFor('keys:rotate').tenant.destroyKey(ending.purpose, ending.version);
            closeDialog('destroy');
            reload();
          }}
        />
      )}
    </Page>
  );
}

/** Null where the vault does not count them. */
function Rows({ rows, isLoading }: { rows: number | null | undefined; isLoading: boolean }) {
  if (rows === undefined) return isLoading ? <span class="muted">…</span> : <>–</>;
  return <>{rows === null ? '' : number(rows)}</>;
}

function Progress({ rotation }: { rotation: KeyRotation }) {
  const { rows_done, rows_total = 0, state, finished_at, unreadable } = rotation;
  if (finished_at !== undefined) {
    return (
      <p class="muted padded">
        {t.keys.finished} <Time at={finished_at} />
        {unreadable > 0 && <span class="text-bad"> {t.keys.unreadable(unreadable)}</span>}
      </p>
    );
  }
  return (
    <div class="panel-body">
      <Meter
        label={t.keys.progress(state, number(rows_done), number(rows_total))}
        value={rows_done}
        max={Math.max(rows_total, 1)}
      />
    </div>
  );
}

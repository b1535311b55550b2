/** Pages: what all of them begin with, and those that are a list of one kind of thing. */
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { closeDialog, isDialogOpen, openDialog } from '../core/dialogs.ts';
import type { Loaded, Pages } from '../core/load.ts';
import { may } from '../core/session.ts';
import { Button, Empty, ErrorNote } from './basics.tsx';
import { CopyAs, type RequestSample } from './copy-as.tsx';
import { type Column, Table } from './table.tsx';

/** Of what has no `data`, the page shows itself that it waits. */
interface Loading extends Pick<Loaded<unknown>, 'error' | 'reload'> {
  readonly data?: unknown;
  readonly isLoading?: boolean;
}

interface PageProps {
  readonly title: string;
  readonly lead?: ComponentChildren;
  readonly back?: { readonly href: string; readonly label: string };
  readonly badge?: ComponentChildren;
  /** The same elsewhere, to be copied. */
  readonly sample?: RequestSample;
  readonly actions?: ComponentChildren;
  /** What the page is about: a failure is said, with a way to try again. */
  readonly of?: Loading;
  readonly children: ComponentChildren;
}

export function Page({ title, lead, back, badge, sample, actions, of, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Strongroom`;
  }, [title]);
  return (
    <div class="page">
      <header class="page-header">
        <div class="page-title">
          {back && (
            <a class="back" href={back.href}>
              {back.label}
            </a>
          )}
          <h1>
            {title} {badge}
          </h1>
          {lead && <p class="lead">{lead}</p>}
        </div>
        {(sample ?? actions) && (
          <div class="actions">
            {sample && <CopyAs sample={sample} />}
            {actions}
          </div>
        )}
      </header>
      {of && <ErrorNote error={of.error} onRetry={of.reload} />}
      {of && 'data' in of && of.data === undefined && of.isLoading && <Bones />}
      {children}
    </div>
  );
}

/** The shape of a page while what it is about is read. */
function Bones() {
  return (
    <div class="panel bones" aria-busy="true">
      <span class="bone" />
      <span class="bone" />
      <span class="bone" />
    </div>
  );
}

interface Creation {
  readonly permission: string;
  readonly label: string;
  readonly form: (close: () => void) => ComponentChildren;
}

interface ListPageProps<R> {
  /** Title, lead, and what is said of an empty list. */
  readonly texts: {
    readonly title: string;
    readonly lead: ComponentChildren;
    readonly empty: { readonly title: string; readonly text: string; readonly command?: string };
  };
  readonly sample: RequestSample;
  readonly pages: Pages<R>;
  readonly columns: readonly Column<R>[];
  readonly keyOf: (row: R) => string;
  readonly hrefOf?: (row: R) => string;
  readonly creation?: Creation;
  readonly actions?: ComponentChildren;
  readonly filters?: ComponentChildren;
  /** In place of the texts of an empty list, where filters have left nothing. */
  readonly nothing?: { readonly title: string; readonly text: string } | undefined;
  /** Dialogs. */
  readonly children?: ComponentChildren;
}

export function ListPage<R>(props: ListPageProps<R>) {
  const { texts, sample, pages, creation, actions, filters, nothing, children, ...table } = props;
  const create = creation && may(creation.permission) && (
    <Button tone="primary" icon="plus" onClick={() => openDialog('create')}>
      {creation.label}
    </Button>
  );
  const { items, isLoading, error } = pages;
  return (
    <Page
      title={texts.title}
      lead={texts.lead}
      sample={sample}
      of={pages}
      actions={
        <>
          {actions}
          {create}
        </>
      }
    >
      {filters && <div class="filters">{filters}</div>}
      {error === undefined && items.length === 0 && !isLoading ? (
        <NothingListed texts={nothing ?? texts.empty} action={nothing ? undefined : create} />
      ) : (
        (items.length > 0 || error === undefined) && (
          <Table label={texts.title} rows={items} isLoading={isLoading} pages={pages} {...table} />
        )
      )}
      {creation && isDialogOpen('create') && creation.form(() => closeDialog('create'))}
      {children}
    </Page>
  );
}

interface NothingListedProps {
  readonly texts: { readonly title: string; readonly text: string; readonly command?: string };
  readonly action: ComponentChildren;
}

function NothingListed({ texts: { title, text, command }, action }: NothingListedProps) {
  return (
    <Empty title={title} command={command} action={action}>
      {text}
    </Empty>
  );
}

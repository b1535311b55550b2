/** Tables, whose first cell leads to more about the row. */
import type { ComponentChildren } from 'preact';
import { number } from '../core/format.ts';
import type { Pages } from '../core/load.ts';
import { t } from '../texts.ts';
import { Button } from './basics.tsx';

export interface Column<R> {
  readonly head: string;
  readonly cell: (row: R) => ComponentChildren;
  /** Left out on a narrow page. */
  readonly isMinor?: boolean;
  readonly isNumber?: boolean;
}

interface TableProps<R> {
  readonly label: string;
  readonly rows: readonly R[];
  readonly keyOf: (row: R) => string;
  readonly columns: readonly Column<R>[];
  readonly hrefOf?: (row: R) => string;
  readonly isLoading?: boolean;
  /** Of a list that goes on. */
  readonly pages?: Omit<Pages<R>, 'items'>;
}

export function Table<R>(props: TableProps<R>) {
  const { label, rows, keyOf, columns, hrefOf, isLoading, pages } = props;
  const classOf = ({ isMinor, isNumber }: Column<R>) =>
    [isMinor && 'minor', isNumber && 'number'].filter(Boolean).join(' ') || undefined;
  return (
    <div class="table" aria-busy={isLoading}>
      <table>
        <caption class="hidden">{label}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.head} scope="col" class={classOf(column)}>
                {column.head === '' ? <span class="hidden">{t.actions}</span> : column.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)} class={hrefOf ? 'leads' : undefined}>
              {columns.map((column, at) => (
                <td key={column.head} class={classOf(column)}>
                  {at === 0 && hrefOf ? (
                    <a class="row-link" href={hrefOf(row)}>
                      {column.cell(row)}
                    </a>
                  ) : (
                    column.cell(row)
                  )}
                </td>
              ))}
            </tr>
          ))}
          {isLoading && rows.length === 0 && <Waiting columns={columns.length} />}
        </tbody>
      </table>
      {pages && (pages.hasMore || pages.page > 1) && <PageTurner {...pages} shown={rows.length} />}
    </div>
  );
}

interface PageTurnerProps extends Omit<Pages<unknown>, 'items'> {
  readonly shown: number;
}

function PageTurner({ page, before, total, hasMore, go, shown }: PageTurnerProps) {
  const range = t.pages.range(number(before + 1), number(before + shown));
  return (
    <div class="page-turner">
      <span class="muted" role="status">
        {total === undefined ? range : t.pages.of(range, number(total))}
      </span>
      <Button
        icon="left"
        label={t.pages.previous}
        keys="p"
        disabled={page === 1}
        onClick={() => go(page - 1)}
      />
      <Button
        icon="right"
        label={t.pages.next}
        keys="n"
        disabled={!hasMore}
        onClick={() => go(page + 1)}
      />
    </div>
  );
}

/** The shape of rows while they are read. */
function Waiting({ columns }: { columns: number }) {
  return [1, 2, 3, 4].map((row) => (
    <tr key={row} class="waiting">
      {Array.from({ length: columns }, (_, at) => (
        <td key={at}>
          <span class="bone" />
        </td>
      ))}
    </tr>
  ));
}

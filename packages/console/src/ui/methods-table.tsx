/** With what a person signs in. */
import type { SignInMethod } from '@strongroom/client';
import { t } from '../texts.ts';
import { Button, Time } from './basics.tsx';
import { Table } from './table.tsx';

interface MethodsTableProps {
  readonly methods: readonly SignInMethod[];
  readonly onRemove: ((method: SignInMethod) => void) | undefined;
}

export function MethodsTable({ methods, onRemove }: MethodsTableProps) {
  if (methods.length === 0) return <p class="muted padded">{t.account.none}</p>;
  return (
    <Table
      label={t.account.methods}
      rows={methods}
      keyOf={(one) => one.id}
      columns={[
        { head: t.account.name, cell: (one) => one.name },
        { head: t.account.kind, cell: (one) => t.account.kinds[one.kind] ?? one.kind },
        { head: t.account.used, cell: (one) => <Time at={one.used_at} />, isMinor: true },
        {
          head: '',
          isNumber: true,
          cell: (one) =>
            onRemove && <Button onClick={() => onRemove(one)}>{t.account.removeShort}</Button>,
        },
      ]}
    />
  );
}

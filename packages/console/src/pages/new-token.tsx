/** The form of a new token: fields for cards and accounts, anything else as text or JSON. */
import type { TokenRequest } from '@strongroom/client';
import { useState } from 'preact/hooks';
import { navigate } from '../core/router.ts';
import { vaultFor } from '../core/session.ts';
import { tokenTypes } from '../core/token-types.ts';
import { t } from '../texts.ts';
import { Area, Check, Select, TextField } from '../ui/basics.tsx';
import { FormDialog } from '../ui/dialog.tsx';
import { tokenHref } from '../ui/palette.tsx';
import { notify } from '../ui/toasts.tsx';

type TokenTypeName = (typeof tokenTypes)[number];

interface NewTokenProps {
  readonly onClose: () => void;
  readonly onCreated: () => void;
}

/** With what search index the last four digits are found. Other types have one of their own. */
const lastFour: Partial<Readonly<Record<TokenTypeName, string>>> = {
  card: '{{ data.number | last4 }}',
  network_token: '{{ data.number | last4 }}',
  bank: '{{ data.account_number | last4 }}',
};

const empty = {
  number: '',
  month: '',
  year: '',
  cvc: '',
  routing: '',
  account: '',
  data: '',
  id: '',
  container: '',
  metadata: '',
};

export function NewToken({ onClose, onCreated }: NewTokenProps) {
  const [type, setType] = useState<TokenTypeName>('card');
  const [fields, setFields] = useState(empty);
  const [isFindable, setFindable] = useState(true);
  const field = (name: keyof typeof empty) => ({
    value: fields[name],
    onValue: (value: string) => setFields((known) => ({ ...known, [name]: value })),
  });
  const texts = t.newToken;
  return (
    <FormDialog
      title={texts.title}
      submit={texts.submit}
      onClose={onClose}
      onSubmit={async () => {
        const request = requestOf(type, fields, isFindable);
        const { id } = await vaultFor('token:create').tokens.create(request);
        onCreated();
        notify({ text: texts.created });
        navigate(tokenHref(id));
      }}
    >
      <Select
        label={texts.type}
        value={type}
        onValue={setType}
        options={tokenTypes.map((one) => [one, one])}
      />
      {(type === 'card' || type === 'network_token') && (
        <>
          <TextField label={texts.number} inputMode="numeric" {...field('number')} />
          <div class="pair">
            <TextField
              label={texts.month}
              inputMode="numeric"
              placeholder="12"
              {...field('month')}
            />
            <TextField
              label={texts.year}
              inputMode="numeric"
              placeholder="2030"
              {...field('year')}
            />
            <TextField
              label={texts.cvc}
              inputMode="numeric"
              title={texts.cvcHint}
              {...field('cvc')}
            />
          </div>
        </>
      )}
      {type === 'bank' && (
        <div class="pair">
          <TextField label={texts.routing} inputMode="numeric" {...field('routing')} />
          <TextField label={texts.account} inputMode="numeric" {...field('account')} />
        </div>
      )}
      {!['card', 'network_token', 'bank'].includes(type) && (
        <Area label={texts.data} hint={texts.dataHint} rows={3} {...field('data')} />
      )}
      {lastFour[type] && (
        <Check label={texts.findable} checked={isFindable} onChange={setFindable} />
      )}
      <div class="pair">
        <TextField label={texts.id} hint={texts.idHint} {...field('id')} />
        <TextField label={texts.container} hint={texts.containerHint} {...field('container')} />
      </div>
      <Area label={texts.metadata} hint={texts.metadataHint} rows={2} {...field('metadata')} />
    </FormDialog>
  );
}

function requestOf(type: TokenTypeName, fields: typeof empty, isFindable: boolean): TokenRequest {
  const index = lastFour[type];
  const metadata = readPairs(fields.metadata);
  return {
    type,
    data: dataOf(type, fields),
    ...(fields.id && { id: fields.id }),
    ...(fields.container && { containers: [fields.container] }),
    ...(Object.keys(metadata).length > 0 && { metadata }),
    ...(index && isFindable && { search_indexes: [index] }),
  } as TokenRequest;
}

function dataOf(type: TokenTypeName, fields: typeof empty): unknown {
  const { number, month, year, cvc, routing, account, data } = fields;
  if (type === 'card' || type === 'network_token') {
    return {
      number: number.replace(/[\s-]/g, ''),
      ...(month && { expiration_month: month }),
      ...(year && { expiration_year: year }),
      ...(cvc && { cvc }),
    };
  }
  if (type === 'bank') return { routing_number: routing, account_number: account };
  if (type !== 'token') return data;
  try {
    return JSON.parse(data);
  } catch {
    return data;
  }
}

/** One pair in each line. */
export function readPairs(text: string): Record<string, string> {
  const pairs = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .map((line) => {
      const [name = '', ...rest] = line.split('=');
      return [name.trim(), rest.join('=').trim()] as const;
    });
  return Object.fromEntries(pairs);
}

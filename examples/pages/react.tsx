/** The same page with React. */
import type { FieldsError, StrongroomElement } from '@strongroom/fields';
import {
  CardCode,
  CardExpiry,
  CardNumber,
  FieldsProvider,
  useFields,
} from '@strongroom/fields/react';
import { type FormEvent, StrictMode, useRef, useState } from 'react';
import { createRoot } from 'react-dom/client';

function CardForm() {
  const fields = useFields();
  const number = useRef<StrongroomElement>(null);
  const expiry = useRef<StrongroomElement>(null);
  const code = useRef<StrongroomElement>(null);
  const [brand, setBrand] = useState('');
  const [result, setResult] = useState('');

  async function save(event: FormEvent) {
    event.preventDefault();
    try {
      const token = await fields?.tokens.create({
        type: 'card',
        data: {
          number: number.current,
          expiration_month: expiry.current?.month,
          expiration_year: expiry.current?.year,
          cvc: code.current,
        },
      });
      setResult(`Saved: ${token.data.number} (${brand})`);
    } catch (error) {
      const { code: reason, customerMessage } = error as FieldsError;
      if (reason !== 'incomplete') setResult(customerMessage);
    }
  }

  return (
    <form onSubmit={save}>
      <CardNumber ref={number} id="number" onChange={(state) => setBrand(state.brand ?? '')} />
      <div className="row">
        <CardExpiry ref={expiry} id="expiry" />
        <CardCode ref={code} id="code" />
      </div>
      <button type="submit">Save</button>
      <p id="result" role="status">
        {result}
      </p>
    </form>
  );
}

const { key = '', vault } = document.body.dataset;
createRoot(document.getElementById('app') as HTMLElement).render(
  <StrictMode>
    <FieldsProvider options={{ key, vault }}>
      <h1>Save a card</h1>
      <CardForm />
    </FieldsProvider>
  </StrictMode>,
);

/** The small parts that all pages are made of. */
import { ApiError, ConnectionError, NotAVaultError, StrongroomError } from '@strongroom/client';
import type { ComponentChildren } from 'preact';
import { useId, useState } from 'preact/hooks';
import { fromNow, fullTime, shortId } from '../core/format.ts';
import { forTenant, MissingRoleError, state } from '../core/session.ts';
import { t } from '../texts.ts';
import { Icon, type IconName } from './icons.tsx';
import { notify } from './toasts.tsx';

type Tone = 'plain' | 'primary' | 'danger' | 'quiet';

export interface ButtonProps {
  readonly onClick?: (() => void) | undefined;
  readonly href?: string | undefined;
  readonly icon?: IconName | undefined;
  readonly tone?: Tone | undefined;
  readonly type?: 'button' | 'submit' | undefined;
  readonly disabled?: boolean | undefined;
  readonly isBusy?: boolean | undefined;
  /** Where the icon alone is shown. */
  readonly label?: string | undefined;
  /** The key that does the same, with nothing else. */
  readonly keys?: string | undefined;
  readonly children?: ComponentChildren;
}

export function Button(props: ButtonProps) {
  const { onClick, href, icon, tone = 'plain', type = 'button', isBusy, label, children } = props;
  const content = (
    <>
      {icon && <Icon name={icon} />}
      {children && <span>{children}</span>}
    </>
  );
  const shared = {
    class: `button ${tone}${children ? '' : ' alone'}`,
    ...(label && { 'aria-label': label, title: label }),
    ...(props.keys && { 'aria-keyshortcuts': props.keys }),
  };
  if (href !== undefined) {
    return (
      <a {...shared} href={href}>
        {content}
      </a>
    );
  }
  return (
    <button
      {...shared}
      type={type}
      onClick={onClick}
      disabled={props.disabled || isBusy}
      aria-busy={isBusy}
    >
      {content}
    </button>
  );
}

export type BadgeTone = 'neutral' | 'good' | 'warn' | 'bad' | 'accent';

export function Badge({
  tone = 'neutral',
  children,
}: {
  tone?: BadgeTone;
  children: ComponentChildren;
}) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

export function Time({ at }: { at: string | number | undefined }) {
  if (at === undefined) return <span class="muted">{t.never}</span>;
  return (
    <time dateTime={new Date(at).toISOString()} title={fullTime(at)}>
      {fromNow(at)}
    </time>
  );
}

/** Copies a text, and says that it did. */
export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    notify({ text: t.copied });
  } catch {
    notify({ text: t.notCopied, tone: 'bad' });
  }
}

export function CopyButton({ text, label = t.copy }: { text: string; label?: string }) {
  return <Button icon="copy" tone="quiet" label={label} onClick={() => void copy(text)} />;
}

/** An id with a way to copy it. */
export function Id({ id, isShort = false }: { id: string; isShort?: boolean }) {
  return (
    <span class="id">
      <code title={id}>{isShort ? shortId(id) : id}</code>
      <CopyButton text={id} label={`${t.copy} ${id}`} />
    </span>
  );
}

interface FieldProps {
  readonly label: string;
  readonly hint?: ComponentChildren;
  readonly error?: string | undefined;
  readonly children: (attributes: FieldAttributes) => ComponentChildren;
}

export interface FieldAttributes {
  readonly id: string;
  readonly 'aria-describedby'?: string;
  readonly 'aria-invalid'?: boolean;
}

/** A label, what is filled in, and what is wrong with it. */
export function Field({ label, hint, error, children }: FieldProps) {
  const id = useId();
  const about = hint !== undefined || error !== undefined;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({
        id,
        ...(about && { 'aria-describedby': `${id}-about` }),
        ...(error !== undefined && { 'aria-invalid': true }),
      })}
      {about && (
        <p id={`${id}-about`} class={error === undefined ? 'hint' : 'hint bad'}>
          {error ?? hint}
        </p>
      )}
    </div>
  );
}

interface TextFieldProps {
  readonly label: string;
  readonly value: string;
  readonly onValue: (value: string) => void;
  readonly hint?: ComponentChildren;
  readonly error?: string | undefined;
  readonly inputMode?: 'numeric' | 'url' | 'text';
  readonly placeholder?: string;
  readonly maxLength?: number;
  readonly title?: string;
}

/** Browsers neither complete nor store what is typed here. */
export function TextField({ label, value, onValue, hint, error, ...input }: TextFieldProps) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(attributes) => (
        <input
          type="text"
          autocomplete="off"
          spellcheck={false}
          {...input}
          {...attributes}
          value={value}
          onInput={(event) => onValue(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

interface AreaProps {
  readonly label: string;
  readonly value: string;
  readonly onValue: (value: string) => void;
  readonly rows?: number;
  readonly hint?: ComponentChildren;
  readonly error?: string | undefined;
  readonly placeholder?: string;
}

export function Area({ label, value, onValue, rows = 5, hint, error, placeholder }: AreaProps) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(attributes) => (
        <textarea
          {...attributes}
          class="code"
          rows={rows}
          autocomplete="off"
          spellcheck={false}
          placeholder={placeholder}
          value={value}
          onInput={(event) => onValue(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

interface SelectProps<V extends string> {
  readonly label: string;
  readonly value: V;
  readonly options: readonly (readonly [value: V, label: string])[];
  readonly onValue: (value: V) => void;
  readonly hint?: ComponentChildren;
}

export function Select<V extends string>({ label, value, options, onValue, hint }: SelectProps<V>) {
  return (
    <Field label={label} hint={hint}>
      {(attributes) => (
        <select
          {...attributes}
          value={value}
          onChange={(event) => onValue(event.currentTarget.value as V)}
        >
          {options.map(([one, text]) => (
            <option key={one} value={one}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

interface PickProps<V extends string> extends Omit<SelectProps<V>, 'hint'> {}

/** A small choice in a row of filters; its name is for screen readers alone. */
export function Pick<V extends string>({ label, value, options, onValue }: PickProps<V>) {
  return (
    <select
      class="pick"
      aria-label={label}
      value={value}
      onChange={(event) => onValue(event.currentTarget.value as V)}
    >
      {options.map(([one, text]) => (
        <option key={one} value={one}>
          {text}
        </option>
      ))}
    </select>
  );
}

interface CheckProps {
  readonly label: ComponentChildren;
  readonly checked: boolean;
  readonly onChange: (checked: boolean) => void;
  readonly disabled?: boolean;
}

export function Check({ label, checked, onChange, disabled }: CheckProps) {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={checked}
        disabled={disabled}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <span>{label}</span>
    </label>
  );
}

interface EmptyProps {
  readonly title: string;
  readonly children: ComponentChildren;
  /** That does on the command line what the page would. */
  readonly command?: string | undefined;
  readonly action?: ComponentChildren;
}

/** What to do where there is nothing yet. */
export function Empty({ title, children, command, action }: EmptyProps) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      <p>{children}</p>
      {command && <Code text={command} />}
      {action && <div class="actions">{action}</div>}
    </div>
  );
}

export function Code({ text }: { text: string }) {
  const shown = forTenant(text);
  return (
    <div class="code-block">
      <pre>{shown}</pre>
      <CopyButton text={shown} />
    </div>
  );
}

/** Why a request failed, in the words of the vault. */
export function messageOf(error: unknown): string {
  if (error instanceof ApiError) {
    const details = Object.entries(error.problem.errors ?? {}).flatMap(([name, messages]) =>
      messages.map((one) => `${name} ${one}`),
    );
    return details.length > 0 ? details.join('. ') : error.message;
  }
  if (error instanceof ConnectionError || error instanceof NotAVaultError) return t.unreachable;
  if (error instanceof StrongroomError || error instanceof Error) return error.message;
  return String(error);
}

export function ErrorNote({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  if (error === undefined) return null;
  // What the page could not load comes by itself; the shell says so.
  if (onRetry && state.value.kind === 'unreachable') return null;
  if (error instanceof MissingRoleError) {
    return (
      <Empty title={t.noRole.title} command={t.noRole.command}>
        {t.noRole.text(error.permission)}
      </Empty>
    );
  }
  return (
    <div class="note bad" role="alert">
      <Icon name="problems" />
      <p>{messageOf(error)}</p>
      {onRetry && (
        <Button tone="quiet" icon="refresh" onClick={onRetry}>
          {t.retry}
        </Button>
      )}
    </div>
  );
}

export function Section({
  title,
  lead,
  actions,
  children,
}: {
  title: string;
  lead?: ComponentChildren;
  actions?: ComponentChildren;
  children: ComponentChildren;
}) {
  const id = useId();
  return (
    <section class="panel" aria-labelledby={id}>
      <header class="panel-header">
        <div>
          <h2 id={id}>{title}</h2>
          {lead && <p class="muted">{lead}</p>}
        </div>
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </section>
  );
}

/** Names and what they are. */
export function Facts({ rows }: { rows: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {rows
        .filter(([, value]) => value !== undefined && value !== null && value !== '')
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

/** What a form is busy with, and why it failed. */
export function useAction(): {
  readonly isBusy: boolean;
  readonly error: unknown;
  readonly run: (act: () => Promise<void>) => Promise<void>;
  readonly clear: () => void;
} {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(undefined);
  return {
    isBusy,
    error,
    clear: () => setError(undefined),
    run: async (act) => {
      setBusy(true);
      setError(undefined);
      try {
        await act();
      } catch (failure) {
        setError(failure);
      } finally {
        setBusy(false);
      }
    },
  };
}

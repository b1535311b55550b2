/** A field in the frame: its inputs, its state for the page, and its value for the frame that calls the vault. */
import type { ElementOptions, FromFrame, Kind, Neighbors, State } from '../protocol.ts';
import { publicKey, send } from './api.ts';
import { badgeOf, brandOf } from './brands.ts';
import {
  accountNumber,
  cardNumber,
  codeInput,
  expiryInput,
  type InputKind,
  routingNumber,
  textInput,
} from './inputs.ts';
import { createLine, type Line } from './line.ts';
import { controllers, incompleteError } from './registry.ts';
import { type Words, wordsIn } from './words.ts';

export interface FieldFrame {
  focus(): void;
  clear(): void;
  update(options: ElementOptions): void;
  /** Which fields are directly before and after this one. */
  meet?(neighbors: Neighbors): void;
}

export interface FieldSetting {
  readonly element: string;
  readonly kind: Kind;
  readonly options: ElementOptions;
  readonly tell: (message: FromFrame) => void;
}

/** Of a card number, so many first digits say which networks it belongs to. */
const binLength = 8;

export function createField({ element, kind, options, tell }: FieldSetting): FieldFrame {
  let isTyping = false;
  /** The input that got the focus because the one before it was complete, until a key is pressed in it. */
  let advancedTo: HTMLInputElement | undefined;
  let networks: readonly string[] = [];
  let selected: string | undefined;
  const numberLine = () => lines.find((line) => line.kind === cardNumber);
  const brand = () => brandOf(numberLine()?.raw() ?? '');
  const kinds = inputsOf(kind, options, () => brand().codeLength);
  const form = document.createElement('form');
  form.noValidate = true;
  form.addEventListener('submit', (event) => event.preventDefault());
  const lines: readonly Line[] = kinds.map((one, at) =>
    createLine(one, {
      changed: () => {
        if (one === cardNumber) numberChanged();
        tell({ type: 'change', state: stateOf() });
      },
      focused: (has) => {
        isTyping = has;
        if (!has) advancedTo = undefined;
        tell({ type: has ? 'focus' : 'blur' });
      },
      entered: () => tell({ type: 'enter' }),
      filled: () => {
        const next = lines[at + 1]?.input;
        next?.focus();
        advancedTo = next;
      },
    }),
  );
  if (kind === 'card') for (const line of lines.slice(1)) line.root.classList.add('half');
  form.append(...lines.map(({ root }) => root));
  document.body.append(form);
  let words = wordsIn(options.locale);
  describe(options);

  let neighbors: Neighbors = {};
  const stops = () =>
    [...form.querySelectorAll('input')].filter(
      ({ disabled, type, checked }) => !disabled && (type !== 'radio' || checked),
    );
  form.addEventListener('keydown', (event) => {
    const { key, shiftKey: isBack, target } = event;
    const isInAdvance = target === advancedTo && advancedTo?.value === '';
    advancedTo = undefined;
    if (key !== 'Tab' || event.altKey || event.ctrlKey || event.metaKey) return;
    // Pressed out of habit: the focus is already where the customer wants it, and this key would skip that input.
    if (isInAdvance && !isBack) return event.preventDefault();
    const to = isBack ? neighbors.previous : neighbors.next;
    if (to === undefined || target !== stops().at(isBack ? 0 : -1)) return;
    // In one step, so that the next key is typed there already; see `tab-order.ts`.
    if (controllers().some((controller) => controller.enter(to, isBack))) event.preventDefault();
  });

  for (const controller of controllers()) {
    controller.register(
      element,
      {
        read: (part) => {
          const wrong = lines.map((line) => line.report());
          const first = wrong.findIndex((one) => one !== undefined);
          if (first >= 0) {
            lines[first]?.input.focus();
            tell({ type: 'change', state: stateOf() });
            throw incompleteError();
          }
          return contentOf(kind, lines, part);
        },
        secrets: () =>
          lines
            .filter((line) => line.kind.label !== 'expiry')
            .flatMap((line) => [line.raw(), line.input.value])
            .filter((text) => text !== ''),
        enter: (isAtEnd) => {
          const input = stops().at(isAtEnd ? -1 : 0);
          input?.focus();
          input?.select();
          return input !== undefined && document.hasFocus();
        },
      },
      window,
    );
  }
  tell({ type: 'ready', state: stateOf() });

  function describe(given: ElementOptions): void {
    words = wordsIn(given.locale);
    for (const line of lines) {
      // A label of the page is for a field of one input.
      line.describe(lines.length === 1 ? given : { ...given, label: undefined }, words);
    }
    showBrand();
  }

  function stateOf(): State {
    const raws = lines.map((line) => line.raw());
    // What a pattern of the page says of a text is said once the customer leaves the field: said for each character, it
    // would tell the page what is typed.
    const isQuiet = kind === 'text' && isTyping;
    const flaws = lines.map((line) => {
      const flaw = line.flaw();
      return isQuiet && flaw === 'invalid' ? undefined : flaw;
    });
    const number = numberLine();
    const digits = number?.raw() ?? '';
    const isComplete = flaws.every((flaw) => flaw === undefined);
    const shown = lines.findIndex(({ root }) => root.classList.contains('wrong'));
    const code = shown >= 0 ? flaws[shown] : undefined;
    const last = number ?? lines.find((line) => line.kind === accountNumber);
    return {
      empty: raws.every((raw) => raw === ''),
      complete: isComplete && raws.some((raw) => raw !== ''),
      valid: isQuiet || shown < 0,
      ...(number && { brand: brand().name }),
      ...(networks.length > 1 && { brands: networks, selectedBrand: selected }),
      ...(last &&
        last.raw() !== '' &&
        last.flaw() === undefined && { lastFour: last.raw().slice(-4) }),
      ...(code && { error: { code, message: words.of(code) } }),
      ...(digits === '' && number && { brand: 'unknown' }),
    };
  }

  let askedFor = '';

  /** Some cards belong to two networks, and the customer may choose (Regulation (EU) 2015/751, article 8). */
  function numberChanged(): void {
    const bin = (numberLine()?.raw() ?? '').slice(0, binLength);
    if (bin.length < binLength) {
      networks = [];
      selected = undefined;
      askedFor = '';
    } else if (bin !== askedFor) {
      askedFor = bin;
      void findNetworks(bin);
    }
    showBrand();
  }

  async function findNetworks(bin: string): Promise<void> {
    const path = `/enrichments/card-details?bin=${bin}`;
    const found = await send({ method: 'GET', path, key: publicKey }).catch(() => undefined);
    if (bin !== askedFor || found?.status !== 200) return;
    const details = found.body as { brand?: string; additional?: readonly { brand?: string }[] };
    const names = [details, ...(details.additional ?? [])].flatMap((one) => one.brand ?? []);
    networks = [...new Set(names)];
    selected = networks[0];
    showBrand();
    tell({ type: 'change', state: stateOf() });
  }

  function showBrand(): void {
    const aside = numberLine()?.aside;
    if (!aside) return;
    const wanted = networks.length > 1 ? networks.join(' ') : brand().name;
    if (aside.dataset['shown'] === `${wanted} ${words.language}`) return;
    aside.dataset['shown'] = `${wanted} ${words.language}`;
    aside.replaceChildren(...(networks.length > 1 ? [choiceOf(words)] : badgesOf(brand().name)));
  }

  function choiceOf(given: Words): HTMLElement {
    const group = document.createElement('fieldset');
    group.className = 'networks';
    const legend = document.createElement('legend');
    legend.className = 'hidden';
    legend.textContent = given.of('network');
    group.append(legend);
    for (const name of networks) {
      const label = document.createElement('label');
      const radio = document.createElement('input');
      radio.type = 'radio';
      radio.name = 'network';
      radio.checked = name === selected;
      radio.setAttribute('aria-label', name);
      radio.addEventListener('change', () => {
        selected = name;
        tell({ type: 'change', state: stateOf() });
      });
      label.append(radio, ...badgesOf(name));
      group.append(label);
    }
    return group;
  }

  return {
    focus: () => (lines.find((line) => line.flaw()) ?? lines[0])?.input.focus(),
    clear: () => {
      for (const line of lines) line.clear();
      if (numberLine()) numberChanged();
      tell({ type: 'change', state: stateOf() });
    },
    update: describe,
    meet: (given) => {
      neighbors = given;
    },
  };
}

function badgesOf(name: string): HTMLElement[] {
  if (name === 'unknown') return [];
  const badge = document.createElement('span');
  badge.className = `badge ${name.replace(/[^a-z-]/g, '')}`;
  badge.textContent = badgeOf(name);
  badge.title = name;
  return [badge];
}

const now = () => new Date();

function inputsOf(kind: Kind, options: ElementOptions, codeLength: () => number): InputKind[] {
  const card = () => [cardNumber, expiryInput(now), codeInput(codeLength)];
  const makers: Partial<Readonly<Record<Kind, () => InputKind[]>>> = {
    card,
    'card-number': () => [cardNumber],
    'card-expiry': () => [expiryInput(now)],
    'card-code': () => [codeInput(() => 0)],
    text: () => [textInput(options)],
    'bank-account': () => [routingNumber, accountNumber],
    'routing-number': () => [routingNumber],
    'account-number': () => [accountNumber],
  };
  return makers[kind]?.() ?? [];
}

/** Of fields with several inputs, the whole is what `data` of a token of that type has. */
function contentOf(kind: Kind, lines: readonly Line[], part: string): unknown {
  const by = (label: string, inner = '') => {
    const line = lines.find((one) => one.kind.label === label);
    return line?.value(inner);
  };
  const card = {
    number: by('number'),
    expiration_month: by('expiry', 'month'),
    expiration_year: by('expiry', 'year'),
    cvc: by('code'),
  };
  const bank = { routing_number: by('routing'), account_number: by('account') };
  if (kind === 'card') {
    const parts = { '': card, number: card.number, month: card.expiration_month };
    return { ...parts, year: card.expiration_year, code: card.cvc }[part];
  }
  if (kind === 'bank-account') {
    return { '': bank, routing: bank.routing_number, account: bank.account_number }[part];
  }
  const [line] = lines;
  return line?.value(part);
}

/** The editor of code, which is loaded only where code is edited. */
import { autocompletion, completeFromList } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { javascript, javascriptLanguage } from '@codemirror/lang-javascript';
import {
  bracketMatching,
  HighlightStyle,
  indentOnInput,
  syntaxHighlighting,
} from '@codemirror/language';
import { EditorState } from '@codemirror/state';
import { EditorView, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';

export interface EditorOptions {
  readonly parent: HTMLElement;
  readonly text: string;
  readonly label: string;
  readonly isDark: boolean;
  readonly onChange: (text: string) => void;
}

/** What the code of a reactor can use, by name, with its type. */
const offered = [
  ['module.exports', 'async (event) => result'],
  ['event.req.args', 'what the caller gave'],
  ['event.bt', 'the vault: tokens, tokenize, detokenize'],
  ['event.bt.tokens.retrieve', '(id: string) => Promise<Token>'],
  ['event.bt.tokens.create', '(request: TokenRequest) => Promise<Token>'],
  ['event.bt.tokens.update', '(id: string, patch: TokenPatch) => Promise<Token>'],
  ['event.bt.tokens.delete', '(id: string) => Promise<void>'],
  ['event.bt.tokenize', '(body: unknown) => Promise<unknown>'],
  ['event.bt.detokenize', '(body: unknown) => Promise<unknown>'],
  ['event.configuration', 'Record<string, string>'],
  ['fetch', '(url: string, init?: RequestInit) => Promise<Response>'],
  ['console.log', '(...values: unknown[]) => void'],
] as const;

const completions = completeFromList(
  offered.map(([label, detail]) => ({ label, detail, type: 'property' })),
);

/** The styles of the editor are adopted by its own root: the page allows no style elements. */
export function openEditor({ parent, text, label, isDark, onChange }: EditorOptions): EditorView {
  const root = parent.shadowRoot ?? parent.attachShadow({ mode: 'open' });
  const state = EditorState.create({
    doc: text,
    extensions: [
      lineNumbers(),
      history(),
      indentOnInput(),
      bracketMatching(),
      javascript(),
      javascriptLanguage.data.of({ autocomplete: completions }),
      autocompletion(),
      syntaxHighlighting(isDark ? darkStyle : lightStyle),
      keymap.of([...defaultKeymap, ...historyKeymap, indentWithTab]),
      EditorView.contentAttributes.of({ 'aria-label': label }),
      EditorView.theme(theme, { dark: isDark }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) onChange(update.state.doc.toString());
      }),
    ],
  });
  return new EditorView({ state, parent: root as unknown as HTMLElement, root });
}

const theme = {
  '&': { color: 'var(--text)', backgroundColor: 'var(--raised)', fontSize: '13px' },
  '.cm-content': { fontFamily: 'var(--mono)', padding: '10px 0', minHeight: '240px' },
  '.cm-gutters': {
    backgroundColor: 'var(--ground)',
    color: 'var(--muted)',
    border: '0',
    borderRight: '1px solid var(--line)',
  },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '-2px' },
  '.cm-tooltip': {
    backgroundColor: 'var(--panel)',
    color: 'var(--text)',
    border: '1px solid var(--line-strong)',
  },
};

const lightStyle = styleOf({
  keyword: '#7a2fb8',
  string: '#17693f',
  number: '#9a4a00',
  name: '#2f50d8',
});
const darkStyle = styleOf({
  keyword: '#c9a2ff',
  string: '#6fd6a0',
  number: '#f0bd63',
  name: '#8fa5ff',
});

interface Colors {
  readonly keyword: string;
  readonly string: string;
  readonly number: string;
  readonly name: string;
}

function styleOf({ keyword, string, number, name }: Colors): HighlightStyle {
  return HighlightStyle.define([
    { tag: tags.keyword, color: keyword },
    { tag: [tags.string, tags.regexp], color: string },
    { tag: [tags.number, tags.bool, tags.null], color: number },
    { tag: [tags.function(tags.variableName), tags.propertyName], color: name },
    { tag: tags.comment, color: 'var(--muted)', fontStyle: 'italic' },
  ]);
}

/** Where the page finds it once the script has run. */
Object.assign(globalThis, { strongroomEditor: { openEditor } });

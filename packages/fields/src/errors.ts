/** What went wrong, for the developer of the page and for the customer. */
import type { Problem } from './protocol.ts';

export class FieldsError extends Error {
  override readonly name = 'FieldsError';
  /** Such as `incomplete`, `frame_blocked`, `origin_not_listed`, `vault_unreachable`, or the vault's own code. */
  readonly code: string;
  /** The status of the vault's response. */
  readonly status: number | undefined;
  /** The problem document of the vault. It has no value of a field. */
  readonly document: unknown;
  /** For the customer, in the language of the fields. */
  readonly customerMessage: string;

  constructor(problem: Problem, locale?: string) {
    const { code, message, status, document, customerMessage } = problem;
    super(message);
    this.customerMessage = customerMessage ?? sorry(locale ?? pageLocale());
    this.code = code;
    this.status = status;
    this.document = document;
  }
}

/** The language of the page; where there is none, as on a server, English. */
export function pageLocale(): string {
  return globalThis.document?.documentElement.lang || globalThis.navigator?.language || 'en';
}

/** For the customer, where a field cannot be shown. */
export function sorry(locale: string): string {
  const texts: Readonly<Record<string, string>> = {
    en: 'This form could not be loaded. Check your connection and reload the page.',
    de: 'Dieses Formular konnte nicht geladen werden. Prüfen Sie die Verbindung und laden Sie die Seite neu.',
    fr: 'Ce formulaire n’a pas pu être chargé. Vérifiez votre connexion et rechargez la page.',
    es: 'No se pudo cargar este formulario. Compruebe su conexión y vuelva a cargar la página.',
    it: 'Impossibile caricare il modulo. Controlla la connessione e ricarica la pagina.',
    pt: 'Não foi possível carregar este formulário. Verifique a conexão e recarregue a página.',
    nl: 'Dit formulier kon niet worden geladen. Controleer de verbinding en laad de pagina opnieuw.',
    pl: 'Nie udało się wczytać formularza. Sprawdź połączenie i odśwież stronę.',
    sv: 'Formuläret kunde inte laddas. Kontrollera anslutningen och ladda om sidan.',
    ja: 'フォームを読み込めませんでした。接続を確認して、ページを再読み込みしてください。',
    zh: '无法加载此表单。请检查网络连接并刷新页面。',
    ar: 'تعذر تحميل هذا النموذج. تحقق من اتصالك وأعد تحميل الصفحة.',
  };
  return texts[locale.toLowerCase().split(/[-_]/)[0] ?? ''] ?? (texts['en'] as string);
}

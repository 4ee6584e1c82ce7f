// Provides `bannerOf`: the button that closes a cookie banner.
//
// The rules are conservative. A banner lies over the page (fixed, sticky, a dialog), mentions cookies or consent, has no
// text field, and has a button whose whole name is one of the phrases below. A button that refuses is preferred to one that
// only closes, that to one that says "understood", and that to one that accepts. Links to other pages do not count.

const BANNER_SUBJECT = new RegExp(
  [
    "cookie", "kakor", "informasjonskaps", "evästeet|evästei", "ciastecz", "sušenk", "süti", "çerez", "куки", "файлы? cookie",
    "クッキー", "쿠키", "gdpr", "dsgvo", "consent to", "tracking technolog", "einwilligung", "consentement", "consentimiento",
    "personenbezogene daten", "données personnelles", "datos personales", "dati personali",
  ].join("|"),
  "i",
);
/** Phrases by meaning, the preferred meaning first. @type {[string, Set<string>][]} */
const BANNER_CHOICES = Object.entries({
  refuse: [
    "reject|reject all|reject cookies|reject all cookies|refuse|refuse all|decline|decline all|decline cookies|deny|deny all|disagree",
    "no thanks|no, thanks|no thank you|opt out|only necessary|necessary only|only essential|essential only|use necessary cookies only",
    "accept only necessary|accept necessary only|accept necessary cookies|accept essential cookies|accept only essential cookies",
    "only necessary cookies|only essential cookies|strictly necessary only|reject optional cookies|reject non-essential|reject additional cookies",
    "reject non-essential cookies|reject unnecessary cookies|continue without accepting|continue without consent|do not accept|don't accept",
    "ablehnen|alle ablehnen|alles ablehnen|cookies ablehnen|alle cookies ablehnen|nur notwendige|nur notwendige cookies|nur erforderliche",
    "nur erforderliche cookies|nur essenzielle|nur essenzielle cookies|nur essenzielle cookies akzeptieren|nur notwendige cookies zulassen",
    "nur notwendige cookies akzeptieren|nur technisch notwendige|nur technisch notwendige cookies|ohne einwilligung fortfahren|nicht zustimmen",
    "optionale cookies ablehnen|nein danke|nein, danke",
    "refuser|tout refuser|refuser tout|je refuse|refuser les cookies|continuer sans accepter|refuser et continuer|cookies nécessaires uniquement",
    "uniquement les cookies nécessaires|non merci|non, merci",
    "rechazar|rechazar todo|rechazar todas|rechazar todas las cookies|rechazar cookies|rechazarlas todas|solo necesarias|sólo necesarias",
    "solo las necesarias|solo cookies necesarias|continuar sin aceptar|no acepto",
    "rejeitar|rejeitar tudo|rejeitar todos|rejeitar cookies|recusar|recusar tudo|recusar todos|apenas necessários|somente necessários|só os necessários",
    "rifiuta|rifiuta tutto|rifiuta tutti|rifiuta i cookie|continua senza accettare|solo necessari|solo i necessari|solo cookie necessari|nega",
    "weigeren|alles weigeren|alle weigeren|cookies weigeren|afwijzen|alles afwijzen|alleen noodzakelijk|alleen noodzakelijke cookies|alleen functionele cookies",
    "odrzuć|odrzuć wszystkie|odrzuć wszystko|tylko niezbędne|nie zgadzam się|avvisa|avvisa alla|neka|neka alla|endast nödvändiga|endast nödvändiga cookies",
    "afvis|afvis alle|kun nødvendige|kun nødvendige cookies|avvis|avvis alle|bare nødvendige|hylkää|hylkää kaikki|vain välttämättömät",
    "odmítnout|odmítnout vše|odmítnout všechny|pouze nezbytné|odmietnuť|odmietnuť všetko|elutasítom|összes elutasítása",
    "отклонить|отклонить все|отказаться|только необходимые|reddet|tümünü reddet|hepsini reddet|yalnızca gerekli",
    "拒否|拒否する|すべて拒否|すべて拒否する|全て拒否|必須のみ|必要なcookieのみ|同意しない|拒绝|全部拒绝|拒绝全部|全部拒絕|仅必要|仅限必要|不同意",
    "거부|모두 거부|전체 거부|필수만 허용|동의하지 않음",
  ],
  close: [
    "close|close banner|close cookie banner|close this banner|dismiss|dismiss banner|hide|schließen|fermer|cerrar|fechar|chiudi|sluiten|zamknij",
    "stäng|luk|lukk|sulje|zavřít|закрыть|kapat|閉じる|关闭|關閉|닫기|x|×|✕|✖|⨯",
  ],
  understood: [
    "ok|okay|got it|i understand|understood|continue|ok, got it|okay, got it|verstanden|ich verstehe|alles klar|j'ai compris|compris|d'accord",
    "entendido|de acuerdo|vale|percebi|entendi|ho capito|begrepen|ik begrijp het|rozumiem|jag förstår|jeg forstår|ymmärrän|rozumím",
    "понятно|хорошо|anladım|tamam|了解|了解しました|知道了|我知道了|확인",
  ],
  accept: [
    "accept|accept all|accept cookies|accept all cookies|accept and continue|accept & continue|accept and close|i accept|agree|i agree|agree and close",
    "agree to all|allow|allow all|allow cookies|allow all cookies|enable all|yes, i agree|consent|that's fine",
    "akzeptieren|alle akzeptieren|alles akzeptieren|alle cookies akzeptieren|cookies akzeptieren|akzeptieren und schließen|zustimmen|allen zustimmen",
    "alle zulassen|alle erlauben|einverstanden|ich stimme zu|annehmen|alle annehmen",
    "accepter|tout accepter|accepter tout|j'accepte|accepter et fermer|accepter les cookies|accepter et continuer|autoriser|tout autoriser",
    "aceptar|aceptar todo|aceptar todas|aceptar cookies|aceptar todas las cookies|acepto|permitir todas|aceitar|aceitar tudo|aceitar todos|aceito",
    "accetta|accetta tutto|accetta tutti|accetto|accetta i cookie|accetta e continua|acconsento|accepteren|alles accepteren|alle cookies accepteren|akkoord",
    "ik ga akkoord|zaakceptuj|zaakceptuj wszystkie|akceptuj|akceptuję|akceptuj wszystkie|zgadzam się|acceptera|acceptera alla|godkänn|godkänn alla",
    "accepter alle|tillad alle|godta|godta alle|aksepter|hyväksy|hyväksy kaikki|přijmout|přijmout vše|souhlasím|elfogadom|összes elfogadása",
    "принять|принять все|согласен|согласиться|kabul et|tümünü kabul et|hepsini kabul et|同意|同意する|すべて同意する|すべて許可|承諾する|許可する",
    "接受|全部接受|接受全部|同意并继续|동의|모두 동의|모두 허용|동의함",
  ],
}).map(([choice, lines]) => [choice, new Set(lines.join("|").split("|"))]);

const MAX_BANNER_TEXT = 8000; // an element with more text is not a banner
const MAX_BUTTON_NAME = 60;
const BANNER_FIELDS = "input:not([type=checkbox], [type=radio], [type=hidden], [type=button], [type=submit]), textarea";

/** @param {any} node */
const displayParent = (node) => unclobbered(node).assignedSlot || parentOrHost(node) || node.defaultView?.frameElement;
/**
 * The innermost ancestor that lies over the page, or null.
 * @param {any} element
 * @returns {any}
 */
const overlayAround = (element) => {
  for (let node = element; node && node !== document.body; node = displayParent(node)) {
    const box = unclobbered(node);
    if (box.nodeType !== 1) continue;
    const { position } = styleOf(node);
    const isDialog = /^(alert)?dialog$/.test(box.getAttribute("role") || "") || box.localName === "dialog";
    if (position === "fixed" || position === "sticky" || isDialog || box.getAttribute("aria-modal") === "true") return node;
  }
  return null;
};
/**
 * All text in an overlay, through shadow roots; empty if it has a text field or too much text.
 * @param {any} box
 * @returns {string}
 */
const bannerText = (box) => {
  let text = "";
  /** @type {(parent: any) => boolean} */
  const isNoBanner = (parent) => {
    for (const child of parent.childNodes) {
      if (text.length > MAX_BANNER_TEXT) return true;
      if (child.nodeType === 3) text += child.data;
      if (child.nodeType !== 1 || UNTEXTUAL.has(child.localName)) continue;
      if (child.matches(BANNER_FIELDS) && child.checkVisibility()) return true;
      if ((shadowOf(child) && isNoBanner(shadowOf(child))) || isNoBanner(child)) return true;
    }
    return false;
  };
  const inside = FRAME_TAGS.has(box.localName) ? /** @type {any} */ (documentIn(box)).body : box;
  return (shadowOf(inside) && isNoBanner(shadowOf(inside))) || isNoBanner(inside) ? "" : text;
};
/** @param {string} name */
const phraseOf = (name) => name.toLowerCase().replace(/’/g, "'").replace(/\s*[.!›»→✓✔]+\s*$/u, "").trim();

/**
 * The number of the candidate that closes a cookie banner, and the meaning of its button; null if there is none.
 * @param {Candidate[]} candidates
 * @param {any[]} elements
 * @returns {[number, string] | null}
 */
const bannerOf = (candidates, elements) => {
  /** @type {[number, string, number] | null} */
  let best = null;
  const boxes = new Map(); // overlay -> whether it mentions cookies
  for (const [i, candidate] of candidates.entries()) {
    if (candidate.kind !== "click" || candidate.disabled || candidate.name.length > MAX_BUTTON_NAME) continue;
    const name = phraseOf(candidate.name);
    const rank = BANNER_CHOICES.findIndex(([, phrases]) => phrases.has(name));
    if (rank < 0 || (best && best[2] <= rank)) continue;
    const { target } = candidate;
    if (target && target.split("#")[0] !== location.href.split("#")[0] && !target.startsWith("javascript:")) continue;
    const box = overlayAround(elements[i]);
    if (!box) continue;
    if (!boxes.has(box)) boxes.set(box, BANNER_SUBJECT.test(bannerText(box)));
    if (boxes.get(box)) best = [i, BANNER_CHOICES[rank][0], rank];
  }
  return best && [best[0], best[1]];
};

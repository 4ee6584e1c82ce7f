// Provides `signsOfWaiting`: what shows a person that the page is not ready yet, although nothing seems to be under way.

// "Loading", "please wait" and the like, as the whole text of an element; with an ellipsis also more words ("Loading maps…").
const LOADING_WORDS = [
  "loading", "please wait", "one moment", "just a moment", "starting", "wird geladen", "lädt", "laden", "bitte warten",
  "einen moment", "chargement", "veuillez patienter", "patientez", "cargando", "espere", "por favor espere", "caricamento",
  "attendere", "carregando", "aguarde", "even geduld", "even wachten", "загрузка", "подождите", "пожалуйста, подождите",
  "ładowanie", "wczytywanie", "proszę czekać", "yükleniyor", "lütfen bekleyin", "laddar", "vänta", "indlæser", "laster",
  "ladataan", "odota", "načítání", "načítá se", "betöltés", "se încarcă", "φόρτωση", "зареждане", "завантаження",
  "加载中", "正在加载", "请稍候", "載入中", "読み込み中", "お待ちください", "로딩 중", "불러오는 중", "잠시만 기다려 주세요",
  "جار التحميل", "جارٍ التحميل", "טוען", "กำลังโหลด", "đang tải", "memuat",
];
const LOADING_TEXT = new RegExp(`^(?:${LOADING_WORDS.join("|")})(?:[\\s.…\\d%]*| .{0,40}(?:…|\\.\\.\\.))$`, "iu");
const MAX_LOADING_TEXT = 60; // characters
const NAMED = "a, button:enabled, summary, label, option, td, th";
const MAX_SPINNER_PX = 200;
const MOVING_MS = 1000; // a progress bar that did not move for longer shows an amount
const PROGRESS = "progress, [role=progressbar]";
/** Times at which progress bars moved. @type {WeakMap<any, number>} */
const progressed = lasting(new WeakMap());

/** @param {any} element */
const isShown = (element) => element.checkVisibility(VISIBLE) && !isEmpty(element.getBoundingClientRect());
/** Note that a progress bar, or a part of it, has changed. @param {MutationRecord} record */
const noteProgress = ({ type, target }) => {
  const bar = type === "attributes" ? /** @type {any} */ (target).closest(PROGRESS) : null;
  if (bar) progressed.set(bar, now());
};
/** Whether a progress bar shows that something is under way, and not an amount. @param {any} bar */
const isUnderWay = (bar) => {
  if (!progressed.has(bar) && activity.hasIntervals) progressed.set(bar, now()); // it may move with the next tick
  const value = bar.localName === "progress" ? bar.getAttribute("value") : bar.getAttribute("aria-valuenow");
  if (value === null) return true;
  const end = parseFloat(bar.getAttribute("max") ?? bar.getAttribute("aria-valuemax") ?? (bar.localName === "progress" ? "1" : "100"));
  return parseFloat(value) < end && now() - (progressed.get(bar) ?? -Infinity) < MOVING_MS;
};
/** Whether an animation turns something small without a text, for ever. @param {Animation} animation */
const isSpinning = (animation) => {
  const effect = /** @type {any} */ (animation.effect);
  if (animation.playState !== "running" || !effect?.target || effect.pseudoElement === "::view-transition") return false;
  if (Number.isFinite(effect.getComputedTiming().endTime)) return false;
  const { width, height } = effect.target.getBoundingClientRect();
  if (!width || width > MAX_SPINNER_PX || height > MAX_SPINNER_PX || effect.target.textContent.trim()) return false;
  return effect.getKeyframes().some((/** @type {any} */ frame) => /rotate/.test(frame.transform ?? "") || frame.rotate);
};
/** Elements whose whole own text is a word for loading. @returns {any[]} */
const loadingTexts = () => {
  const { body } = document;
  const all = body?.textContent?.toLowerCase() ?? "";
  if (!LOADING_WORDS.some((word) => all.includes(word))) return []; // an expression would be compiled in each document
  const found = [];
  const walker = document.createTreeWalker(body, 4);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const text = /** @type {string} */ (node.nodeValue);
    if (text.length > 2 * MAX_LOADING_TEXT || !LOADING_TEXT.test(text.trim())) continue;
    const parent = node.parentElement && unclobbered(node.parentElement);
    // Names of things may be such words: "Laden" is a shop, "Starting" a value of a column.
    if (parent?.textContent.trim().length <= MAX_LOADING_TEXT && !parent.closest(NAMED)) found.push(parent);
  }
  return found;
};
/** Whether the window shows nothing to use: an empty page, or one behind a splash screen. */
const isCurtained = () => {
  if (!isUsable()) return !shadowRoots().some((root) => root.querySelector(USABLE));
  const curtain = backdropOf(document);
  return Boolean(curtain) && ![...curtain.querySelectorAll(USABLE)].some(isShown) && curtain.parentElement?.closest("[role=dialog]") === null;
};
/** The main part of the page, if it shows nothing. @returns {Element | undefined} */
const emptyMain = () =>
  [...document.querySelectorAll("main, [role=main]")].find((part) =>
    !part.textContent?.trim() && !part.querySelector("img, svg, canvas, video, iframe, input") &&
    !shadowRoots().some((root) => part.contains(root.host)));

/** What a sign is recognised by in other documents of the site. @param {string} rule @param {any} [element] */
const nameOfSign = (rule, element) => {
  const part = (/** @type {any} */ node) => (node ? [node.localName, ...node.classList].join(".") : "");
  return `${rule} ${part(element?.parentElement)} ${part(element)}`.replace(/\d+/g, "#").trim();
};
/**
 * Names of the signs by which the page shows that it waits, without those that are known to stay.
 * @param {SnapshotOptions} options
 * @param {number} until The time until which the page is waited for.
 * @returns {string[]}
 */
const signsOfWaiting = ({ lastingSigns = [] }, until) => {
  /** @type {Set<string>} */
  const names = new Set();
  const add = (/** @type {string} */ rule, /** @type {any[]} */ elements) => {
    for (const element of elements) if (isShown(element)) names.add(nameOfSign(rule, element));
  };
  add("busy", [...document.querySelectorAll('[aria-busy="true"]')]);
  add("progress", [...document.querySelectorAll(PROGRESS)].filter(isUnderWay));
  add("spinner", document.getAnimations().filter(isSpinning).map((animation) => /** @type {any} */ (animation.effect).target));
  add("text", loadingTexts());
  // What is drawn later shows nothing yet; only what is under way tells that there will be something.
  if (hasLaterTimers(until) || activity.polls.size > 0) {
    if (isCurtained()) names.add("curtain");
    if (emptyMain()) names.add(nameOfSign("main", emptyMain()));
  }
  return [...names].filter((name) => !lastingSigns.includes(name) && !activity.lastingSigns.has(name));
};

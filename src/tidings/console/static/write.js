// Subscription editor: checks the text while it is typed, and previews which of the latest publications would match.
const form = document.getElementById("write");
const text = document.getElementById("text");
const editor = document.getElementById("editor");
const verdict = document.getElementById("verdict");
const preview = document.getElementById("preview");
const previewed = document.getElementById("previewed");
const examples = document.querySelectorAll("[data-language]");
const PAUSE = 250; // milliseconds without typing before a check
const LAST = 200; // publications to preview
const SHOWN = 20;
let timer = 0;
let asking = new AbortController();

const mirror = document.createElement("div");
mirror.className = "mirror";
mirror.setAttribute("aria-hidden", "true");
editor.prepend(mirror);
editor.classList.add("mirrored");

function language() {
  return form.elements.language.value;
}

/** Escape bidirectional control characters, as the server does. */
function visible(words) {
  return words.replace(/[\u202a-\u202e\u2066-\u2069]/g, (found) => `\\u${found.charCodeAt(0).toString(16)}`);
}

function element(name, words, kind = "") {
  const made = document.createElement(name);
  made.textContent = visible(words);
  if (kind) made.className = kind;
  return made;
}

function capital(words) {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** The place of a problem as string offsets: columns count characters, JavaScript strings count UTF-16 units. */
function span(place) {
  const lines = text.value.split("\n");
  const before = lines.slice(0, place.line - 1).reduce((sum, line) => sum + line.length + 1, 0);
  const characters = [...(lines[place.line - 1] ?? "")];
  const start = before + characters.slice(0, place.column - 1).join("").length;
  const length = characters.slice(place.column - 1, place.column - 1 + place.length).join("").length;
  return [start, start + length];
}

/** Underline a place; an error at the end of the text underlines a space. */
function underline(place) {
  mirror.replaceChildren();
  if (place) {
    const [start, end] = span(place);
    const wrong = element("mark", "");
    wrong.textContent = text.value.slice(start, end) || "\u00a0"; // unescaped: it lies exactly over the text field
    mirror.append(text.value.slice(0, start), wrong, text.value.slice(end));
  }
  mirror.scrollTop = text.scrollTop;
}

function say(kind, ...parts) {
  verdict.className = `verdict ${kind}`;
  verdict.replaceChildren(...parts);
}

function refused(problem) {
  const line = element("p", "");
  line.append(element("strong", capital(problem.what ?? problem.detail ?? problem.title)));
  const where = problem.place ? ` (line ${problem.place.line}, column ${problem.place.column})` : "";
  line.append(element("span", where, "quiet"));
  const more = [];
  if (problem.hint) more.push(element("p", capital(problem.hint)));
  if (problem.accepted) more.push(element("p", `Accepted: ${problem.accepted}`, "quiet"));
  say("bad", line, ...more);
  text.setAttribute("aria-invalid", "true");
  underline(problem.place);
  preview.hidden = true;
}

function taken(found) {
  const predicates = found.predicates === 1 ? "1 predicate" : `${found.predicates} predicates`;
  const warnings = found.warnings.map(warned);
  say("good", element("p", `${predicates}, reached through ${found.reached_through}`), ...warnings);
  text.removeAttribute("aria-invalid");
  underline(null);
}

function warned(warning) {
  const line = element("p", "");
  line.append(element("strong", "Warning"), visible(`: ${warning.what}`));
  const where = warning.place ? ` (line ${warning.place.line}, column ${warning.place.column})` : "";
  line.append(element("span", where, "quiet"));
  const box = element("div", "", "warning");
  box.append(line);
  if (warning.hint) box.append(element("p", capital(warning.hint)));
  return box;
}

function nothing() {
  say("");
  text.removeAttribute("aria-invalid");
  underline(null);
  preview.hidden = true;
}

function match(one) {
  const line = document.createElement("li");
  const why = element("span", "", "what");
  why.append(...one.words.map((words) => element("span", words, "reason")));
  const about = element("span", "", "quiet");
  about.append(element("code", one.publication.id), `, position ${one.publication.position}`);
  line.append(why, document.createElement("br"), about);
  return line;
}

function foreseen(found) {
  const count = found.matches.length;
  const all = found.looked_at === 1 ? "1 publication" : `${found.looked_at} publications`;
  const list = element("ul", "", "preview");
  list.tabIndex = 0;
  list.setAttribute("aria-label", "Matching publications");
  list.append(...found.matches.slice(0, SHOWN).map(match));
  const parts = [element("p", `${count === 0 ? "None" : count} of ${all} would have matched.`), list];
  if (count > SHOWN) parts.push(element("p", `and ${count - SHOWN} more`, "quiet"));
  if (!found.complete) parts.push(element("p", "Not all could be examined.", "quiet"));
  parts.push(...found.notes.map((note) => element("p", capital(note), "quiet")));
  previewed.replaceChildren(...parts);
  preview.hidden = false;
}

async function ask(path, given, signal) {
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch(path, { method: "POST", headers, body: JSON.stringify(given), signal });
  return [answer.ok, await answer.json()];
}

/** Check the current text; typing on aborts a check in progress. */
async function check() {
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  const given = { language: language(), text: text.value };
  if (!given.text.trim()) return nothing();
  try {
    const [isGood, found] = await ask("/v1/check", given, signal);
    if (!isGood) return refused(found);
    taken(found);
    if (given.language === "rules") preview.hidden = true; // rules are about metadata, not publications
    else {
      const whose = form.elements.subscriber?.value ? { subscriber: form.elements.subscriber.value } : {};
      const [isDone, shown] = await ask("/v1/preview", { ...given, ...whose, last: LAST }, signal);
      if (isDone) foreseen(shown);
      else preview.hidden = true; // the preview shown is of another text
    }
  } catch (problem) {
    if (problem.name !== "AbortError") say("", element("p", "The text cannot be checked right now.", "quiet"));
  }
}

function soon() {
  underline(null);
  clearTimeout(timer);
  timer = setTimeout(check, PAUSE);
}

/** Show the examples of the chosen language. */
function choose() {
  for (const section of examples) section.hidden = section.dataset.language !== language();
}

text.addEventListener("input", soon);
text.addEventListener("scroll", () => { mirror.scrollTop = text.scrollTop; });
form.addEventListener("change", (event) => {
  if (event.target.name !== "language") return;
  choose();
  soon();
});
document.querySelector("aside").addEventListener("click", (event) => {
  const example = event.target.closest(".example");
  if (!example) return;
  event.preventDefault();
  text.value = example.dataset.text;
  text.focus();
  check();
});

choose();
// Keep the server's error about this text until the text changes: the check may fail.
if (text.value && !document.getElementById("text-problem")) check();
